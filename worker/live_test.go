package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// patience is how long a test on a real server waits for what must happen.
const patience = 2 * time.Minute

// live is a real server with the part of a coordinator that workers meet.
type live struct {
	t      testing.TB
	server *natstest.Server
	names  natswire.Names
	bus    *natswire.Conn
	done   chan answer
}

type answer struct {
	call  string
	round int
	protocol.Result
}

func goLive(t testing.TB) *live {
	t.Helper()
	s := natstest.Start(t)
	l := &live{t: t, server: s, names: names(t), bus: s.Connect(t, ""), done: make(chan answer, 1024)}
	stop, err := l.bus.Subscribe(l.names.DoneSubject("s"), func(m natswire.Msg) {
		_, _, call, round, ok := l.names.ParseDone(m)
		r, err := protocol.DecodeResult(m.Data)
		if !ok || err != nil {
			t.Errorf("on %s: %v", m.Subject, err)
		}
		l.done <- answer{call, round, r}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return l
}

func (l *live) consumer(name string, ackWait time.Duration) {
	l.t.Helper()
	err := l.bus.EnsureConsumer(l.t.Context(), natswire.Consumer{
		Stream: l.names.Calls(), Durable: name, Filter: l.names.CallSubject(name), AckWait: ackWait, MaxDeliver: 5, MaxAckPending: -1,
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// start runs a worker on a connection to url until the test ends, and waits until it serves.
func (l *live) start(id, url string, cfg worker.Config, tools ...tool.Tool) *process {
	l.t.Helper()
	serving := make(chan string, len(tools))
	cfg.Bus = l.server.Dial(l.t, natswire.Config{URL: url})
	cfg.Names, cfg.ID, cfg.Tools = l.names, id, tools
	cfg.Listener = worker.Join(cfg.Listener, worker.Events{Serving: func(tool string) {
		select {
		case serving <- tool:
		default:
		}
	}})
	w, err := worker.New(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{Worker: w, stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = w.Run(ctx)
	}()
	l.t.Cleanup(func() { _ = p.drain() })
	for range tools {
		receive(l.t, serving)
	}
	return p
}

func (l *live) publish(tl tool.Tool, id string) {
	l.t.Helper()
	l.send(l.call(tl, id, `{"n":1}`))
}

// call is an envelope for a tool, good for a minute.
func (l *live) call(tl tool.Tool, id, args string) protocol.Envelope {
	return protocol.Envelope{
		V: protocol.Version, App: "app", User: "u", Session: "s", Call: id, Tool: tl.Name(), Digest: digest(l.t, tl), Effect: tl.(tool.Configured).Settings().Effect,
		Args: json.RawMessage(args), AnswersTo: protocol.MailboxResults, Deadline: time.Now().Add(time.Minute).UnixMilli(),
	}
}

func (l *live) send(env protocol.Envelope) {
	l.t.Helper()
	data, err := json.Marshal(env)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.bus.Publish(l.t.Context(), natswire.Msg{Subject: l.names.CallSubject(env.Tool), Data: data}); err != nil {
		l.t.Fatal(err)
	}
}

// receive waits for a word.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came in %s", patience)
		panic("unreachable")
	}
}

// loud is a gate that says when a call starts.
func loud(name string, effect tool.Effect) (*gate, chan string) {
	g := newGate(name, effect)
	started := make(chan string, 64)
	run := g.run
	g.run = func(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
		started <- ctx.FunctionCallID()
		return run(ctx, args)
	}
	return g, started
}

func TestLiveWorkerRunsInParallelAndHoldsNoMore(t *testing.T) {
	l := goLive(t)
	g, started := loud("slow", tool.AtMostOnce)
	l.consumer("slow", 30*time.Second)
	l.start("w1", "", worker.Config{Slots: 4}, g)
	for i := range 10 {
		l.publish(g, fmt.Sprint("c", i))
	}
	for range 4 {
		receive(t, started)
	}
	st, err := l.bus.ConsumerState(t.Context(), l.names.Calls(), "slow")
	if err != nil || st.AckPending != 4 || st.Pending != 6 {
		t.Errorf("%d held and %d pending, %v; want 4 and 6", st.AckPending, st.Pending, err)
	}
	close(g.open)
	seen := map[string]bool{}
	for range 10 {
		a := receive(t, l.done)
		if seen[a.call] || a.Outcome != protocol.OutcomeCompleted || a.Attempt != 1 {
			t.Errorf("answer %+v", a)
		}
		seen[a.call] = true
	}
}

func TestLiveDrainedCallIsRunByAnother(t *testing.T) {
	l := goLive(t)
	g, started := loud("slow", tool.Idempotent)
	l.consumer("slow", 30*time.Second)
	w1 := l.start("w1", "", worker.Config{Grace: time.Millisecond}, g)
	l.publish(g, "c1")
	receive(t, started)
	if err := w1.drain(); err != worker.ErrDrainTimeout {
		t.Errorf("Run = %v", err)
	}
	l.start("w2", "", worker.Config{}, g)
	receive(t, started) // after the delay of a nak, long before the ack wait
	close(g.open)
	if a := receive(t, l.done); a.Worker != "w2" || a.Attempt != 2 {
		t.Errorf("answer %+v", a)
	}
}

func TestLiveWorkerSurvivesARestart(t *testing.T) {
	l := goLive(t)
	g, started := loud("slow", tool.AtMostOnce)
	l.consumer("slow", 30*time.Second)
	l.start("w1", "", worker.Config{}, g)
	l.publish(g, "c1")
	receive(t, started)
	l.server.Stop(t)
	close(g.open) // the result meets a server that is down
	l.server.Restart(t)
	if a := l.await("c1"); a.Outcome != protocol.OutcomeCompleted || a.Attempt != 1 {
		t.Errorf("answer %+v", a)
	}
	l.publish(g, "c2")
	if a := l.await("c2"); a.Outcome != protocol.OutcomeCompleted {
		t.Errorf("answer %+v", a)
	}
}

// await reads a mailbox until it is filled: what is republished may be missed across a restart.
func (l *live) await(call string) protocol.Result {
	l.t.Helper()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		stored, err := l.bus.Last(l.t.Context(), l.names.Results(), l.names.ResultSubject("slow", "s", call, 0))
		if err != nil {
			continue
		}
		r, err := protocol.DecodeResult(stored.Data)
		if err != nil {
			l.t.Fatal(err)
		}
		return r
	}
	l.t.Fatalf("call %s has no result", call)
	panic("unreachable")
}

func TestLiveWorkerSurvivesItsConsumer(t *testing.T) {
	l := goLive(t)
	e := echo("echo", tool.Read)
	r := make(chan string, 8)
	l.consumer("echo", 30*time.Second)
	l.start("w1", "", worker.Config{Listener: worker.Events{
		Lost: func(tool string, err error) { r <- "lost " + string(protocol.CodeOf(err)) },
	}}, e)
	if err := l.bus.DeleteConsumer(t.Context(), l.names.Calls(), "echo"); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, r); got != "lost consumer_gone" {
		t.Errorf("told %q", got)
	}
	l.publish(e, "c1")
	l.consumer("echo", 30*time.Second)
	receive(t, l.done)
}

// A worker is cut off after its claim; another meets the claim and leaves the call alone; the first, back again, answers.
func TestLiveClaimOutlivesAPartition(t *testing.T) {
	l := goLive(t)
	proxy := natstest.StartProxy(t, l.server)
	g, started := loud("slow", tool.AtMostOnce)
	l.consumer("slow", time.Second)
	l.start("w1", proxy.URL(), worker.Config{Slots: 1}, g)
	l.publish(g, "c1")
	receive(t, started)
	proxy.Cut()
	settled := make(chan worker.Settlement, 8)
	l.start("w2", "", worker.Config{Listener: worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { settled <- s }}}, g)
	if s := receive(t, settled); s.Way != worker.Dropped || s.Code != protocol.CodeAnswered {
		t.Errorf("the second worker settled it as %+v", s)
	}
	proxy.Heal()
	close(g.open)
	if a := receive(t, l.done); a.Worker != "w1" || a.Outcome != protocol.OutcomeCompleted {
		t.Errorf("answer %+v", a)
	}
	if g.starts() != 1 {
		t.Errorf("%d starts", g.starts())
	}
}
