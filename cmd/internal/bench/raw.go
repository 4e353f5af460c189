package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// NameRaw is the name of the subject that OpenRaw opens; the ratios of a report are against it.
const NameRaw = "raw durable round trip"

// paths names the streams and subjects of a round trip. The streams have the settings of CALLS and RESULTS.
type paths string

func (p paths) calls() string    { return "BENCH_CALLS_" + string(p) }
func (p paths) results() string  { return "BENCH_RESULTS_" + string(p) }
func (p paths) call() string     { return "bench." + string(p) + ".call.raw" }
func (p paths) sentinel() string { return "bench." + string(p) + ".call.sentinel" }
func (p paths) result() string   { return "bench." + string(p) + ".result." } // <call>.<slot>
func (p paths) done() string     { return "bench." + string(p) + ".done." }   // the same, republished once stored

// raw is the least that gives a durable call with a durable answer: the call is stored in a work queue, a worker pulls
// it, stores the result in a mailbox that takes only the first, and acks the call when the result is stored; the caller
// hears of the result when it is. Publishing waits for no ack where a later step proves it. No schema, no log, no
// claim, no trace.
type raw struct {
	at             paths
	client, server *nats.Conn
	calls          jetstream.JetStream // of the caller
	results        jetstream.Stream
	runs           int
	worker         *rawWorker
}

// OpenRaw opens the measurement of the raw durable round trip, between one caller and one worker, each with a
// connection of its own. Only one may be open on a broker.
func OpenRaw(ctx context.Context, b *Broker) (Subject, func(), error) {
	r := &raw{at: "raw"}
	if err := r.open(ctx, b); err != nil {
		r.close()
		return nil, nil, fmt.Errorf("raw round trip: %w", err)
	}
	return r, r.close, nil
}

func (r *raw) open(ctx context.Context, b *Broker) (err error) {
	if r.client, err = b.Connect("bench-" + string(r.at) + "-caller"); err != nil {
		return err
	}
	if r.server, err = b.Connect("bench-" + string(r.at) + "-worker"); err != nil {
		return err
	}
	if r.calls, err = jetstream.New(r.client); err != nil {
		return err
	}
	calls, err := r.calls.CreateStream(ctx, jetstream.StreamConfig{
		Name: r.at.calls(), Subjects: []string{r.at.call(), r.at.sentinel()}, Retention: jetstream.WorkQueuePolicy,
		Discard: jetstream.DiscardNew, MaxConsumers: -1,
	})
	if err != nil {
		return err
	}
	r.results, err = r.calls.CreateStream(ctx, jetstream.StreamConfig{
		Name: r.at.results(), Subjects: []string{r.at.result() + "*.*"},
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		RePublish: &jetstream.RePublish{Source: r.at.result() + "*.*", Destination: r.at.done() + "{{wildcard(1)}}.{{wildcard(2)}}"},
	})
	if err != nil {
		return err
	}
	// A work queue whose last message is acked deletes its file and makes a new one, over and over; one message that
	// nobody consumes prevents it.
	if _, err = r.calls.Publish(ctx, r.at.sentinel(), nil); err != nil {
		return err
	}
	consumer, err := calls.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "raw", FilterSubject: r.at.call(), AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxAckPending: -1,
	})
	if err != nil {
		return err
	}
	r.worker, err = startRawWorker(r.server, r.at, consumer.CachedInfo().Name)
	return err
}

func (r *raw) close() {
	if r.worker != nil {
		r.worker.stop()
	}
	for _, nc := range []*nats.Conn{r.client, r.server} {
		if nc != nil {
			nc.Close()
		}
	}
}

func (*raw) Name() string { return NameRaw }

func (r *raw) Run(ctx context.Context, inFlight, n int) (Sample, error) {
	return r.run(ctx, inFlight, n, func(_ context.Context, _ int, call func() error) error { return call() })
}

// run has around make each call of a slot.
func (r *raw) run(ctx context.Context, inFlight, n int, around func(ctx context.Context, slot int, call func() error) error) (Sample, error) {
	if err := r.results.Purge(ctx); err != nil { // each run meets an empty mailbox
		return Sample{}, err
	}
	r.runs++
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r.worker.begin(n, fail)

	heard := make([]chan string, inFlight) // by slot: the call whose result was stored
	for i := range heard {
		heard[i] = make(chan string, 1)
	}
	sub, err := r.client.Subscribe(r.at.done()+"*.*", func(m *nats.Msg) {
		call, slot, _ := strings.Cut(strings.TrimPrefix(m.Subject, r.at.done()), ".")
		i, err := strconv.Atoi(slot)
		if err != nil || i >= len(heard) {
			fail(fmt.Errorf("unexpected result on %s", m.Subject))
			return
		}
		select {
		case heard[i] <- call:
		default: // a slot has one call open
			fail(fmt.Errorf("heard twice of a result: %s", m.Subject))
		}
	})
	if err != nil {
		return Sample{}, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection

	question := make([]byte, payloadSize)
	sample, err := Drive(ctx, inFlight, n, func(ctx context.Context, slot, i int) error {
		return around(ctx, slot, func() error { return r.trip(ctx, slot, i, question, heard) })
	})
	if err != nil {
		return Sample{}, err
	}
	return sample, r.worker.settled(ctx)
}

// trip is one round trip.
func (r *raw) trip(ctx context.Context, slot, i int, question []byte, heard []chan string) error {
	call := strconv.Itoa(r.runs) + "-" + strconv.Itoa(i)
	msg := &nats.Msg{Subject: r.at.call(), Header: nats.Header{"Bench-Reply": {call + "." + strconv.Itoa(slot)}}, Data: question}
	future, err := r.calls.PublishMsgAsync(msg)
	if err != nil {
		return err
	}
	select {
	case err := <-future.Err():
		return fmt.Errorf("store the call: %w", err)
	case got := <-heard[slot]:
		if got != call {
			return fmt.Errorf("heard of call %s instead of %s", got, call)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rawWorker pulls calls, stores results and acks.
type rawWorker struct {
	consume jetstream.ConsumeContext
	stored  chan rawStored // in the order of the calls
	ended   chan struct{}
	run     chan rawRun
	all     chan struct{} // a token when the calls of a run are all acked
}

type rawStored struct {
	call   jetstream.Msg
	future jetstream.PubAckFuture
	err    error
}

// rawRun tells the worker how many calls come and whom to tell of a failure.
type rawRun struct {
	calls int
	fail  context.CancelCauseFunc
}

func startRawWorker(nc *nats.Conn, at paths, durable string) (*rawWorker, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(startLimit))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	consumer, err := js.Consumer(ctx, at.calls(), durable)
	if err != nil {
		return nil, err
	}
	w := &rawWorker{
		stored: make(chan rawStored, 1024), ended: make(chan struct{}),
		run: make(chan rawRun, 1), all: make(chan struct{}, 1),
	}
	answer := make([]byte, payloadSize)
	w.consume, err = consumer.Consume(func(m jetstream.Msg) {
		future, err := js.PublishAsync(at.result()+m.Headers().Get("Bench-Reply"), answer)
		w.stored <- rawStored{call: m, future: future, err: err}
	})
	if err != nil {
		return nil, err
	}
	go w.settle()
	return w, nil
}

// settle acks each call once its result is stored.
func (w *rawWorker) settle() {
	defer close(w.ended)
	var run rawRun
	for s := range w.stored {
		if run.calls == 0 {
			var ok bool
			if run, ok = <-w.run; !ok {
				return // what a failed run left over
			}
		}
		err := s.err
		if err == nil {
			select {
			case <-s.future.Ok():
				err = w.ack(s.call, run.calls == 1)
			case err = <-s.future.Err():
			}
		}
		if err != nil {
			run.fail(fmt.Errorf("store a result: %w", err))
		}
		if run.calls--; run.calls == 0 {
			w.all <- struct{}{}
		}
	}
}

// ack waits for the broker after the last call of a run: acks are taken in order, so that all have been then.
func (w *rawWorker) ack(call jetstream.Msg, last bool) error {
	if !last {
		return call.Ack()
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return call.DoubleAck(ctx)
}

func (w *rawWorker) begin(calls int, fail context.CancelCauseFunc) { w.run <- rawRun{calls, fail} }

// settled waits until the broker has taken the ack of every call of the run.
func (w *rawWorker) settled(ctx context.Context) error {
	select {
	case <-w.all:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("calls were not settled"), context.Cause(ctx))
	}
}

func (w *rawWorker) stop() {
	w.consume.Stop()
	<-w.consume.Closed() // no delivery runs any more
	close(w.run)
	close(w.stored)
	<-w.ended
}
