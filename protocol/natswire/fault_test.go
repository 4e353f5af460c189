package natswire_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

const patience = 2 * time.Minute

// notices waits for what a connection tells.
type notices chan natswire.Notice

func (n notices) await(t *testing.T, kind natswire.NoticeKind) natswire.Notice {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case got := <-n:
			if got.Kind == kind {
				return got
			}
		case <-late:
			t.Fatalf("no notice %s", kind)
		}
	}
}

func await[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("it never came: %s", what)
	}
	panic("unreachable")
}

func ensure(t testing.TB, c *natswire.Conn, tool string) natswire.Consumer {
	t.Helper()
	durable := natswire.Consumer{
		Stream: c.Names().Calls(), Durable: tool, Filter: c.Names().CallSubject(tool), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1,
	}
	if err := c.EnsureConsumer(t.Context(), durable); err != nil {
		t.Fatal(err)
	}
	return durable
}

// Every publish that was acked is delivered, and the subscription outlives the server.
func TestPublishAndPullSurviveAServerRestart(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	tool := ensure(t, c, "tool")
	tool.AckWait = 2 * time.Second // what was on its way to the worker when the server stopped comes again after it
	if err := c.EnsureConsumer(t.Context(), tool); err != nil {
		t.Fatal(err)
	}
	worker := s.Dial(t, natswire.Config{})
	const calls = 400
	var mu sync.Mutex
	came := make(map[string]int)
	all := make(chan struct{})
	p, err := worker.Pull(t.Context(), tool.Stream, tool.Durable, natswire.PullEvents{
		Deliver: func(d natswire.Delivery) {
			d.Ack()
			mu.Lock()
			defer mu.Unlock()
			came[string(d.Data)]++
			if len(came) == calls {
				select {
				case <-all:
				default:
					close(all)
				}
			}
		},
		Lost: func(err error) { t.Errorf("lost: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Want(2 * calls)

	half := make(chan struct{})
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for i := range calls {
			if i == calls/2 {
				close(half)
			}
			m := natswire.Msg{Subject: tool.Filter, ID: fmt.Sprint(i), Data: fmt.Append(nil, i)}
			for {
				_, err := c.Publish(t.Context(), m)
				if err == nil {
					break
				}
				if protocol.CodeOf(err) != protocol.CodeUnreachable {
					t.Errorf("publish %d: %v", i, err)
					return
				}
				retry := time.NewTimer(20 * time.Millisecond)
				select {
				case <-retry.C:
				case <-t.Context().Done():
					return
				}
			}
		}
	})
	<-half
	s.Restart(t)
	publishing.Wait()
	select {
	case <-all:
	case <-time.After(patience):
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("%d of %d came", len(came), calls)
	}
}

// Without this a publish that was reported as failed would be stored after the reconnect, behind the back of every fence.
func TestFailedPublishDoesNotLandLater(t *testing.T) {
	s := natstest.Start(t)
	direct := s.Connect(t, "")
	proxy := natstest.StartProxy(t, s)
	heard := make(notices, 64)
	c := s.Dial(t, natswire.Config{URL: proxy.URL(), Listener: func(n natswire.Notice) { heard <- n }})
	log := c.Names().LogSubject("app", "s1")
	if _, err := c.Publish(t.Context(), natswire.Msg{Subject: log, Data: []byte("before")}); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	heard.await(t, natswire.Disconnected)
	for range 20 {
		_, err := c.Publish(t.Context(), natswire.Msg{Subject: log, Data: []byte("while cut")})
		wantCode(t, err, protocol.CodeUnreachable)
	}
	wantCode(t, c.Emit(t.Context(), natswire.Msg{Subject: log, Data: []byte("while cut")}), protocol.CodeUnreachable)
	proxy.Heal()
	heard.await(t, natswire.Reconnected)
	if _, err := c.Publish(t.Context(), natswire.Msg{Subject: log, Data: []byte("after")}); err != nil {
		t.Fatal(err)
	}
	got, err := direct.Read(t.Context(), c.Names().Log(), log, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || string(got[0].Data) != "before" || string(got[1].Data) != "after" {
		t.Fatalf("the log holds %d messages: %+v", len(got), got)
	}
}

// A call that waits when the connection breaks learns it at once, not after its deadline.
func TestWaitingCallFailsWithTheConnection(t *testing.T) {
	s := natstest.Start(t)
	s.Connect(t, "")
	proxy := natstest.StartProxy(t, s)
	c := s.Dial(t, natswire.Config{URL: proxy.URL()})
	proxy.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Publish(ctx, natswire.Msg{Subject: c.Names().LogSubject("app", "s1"), Data: []byte("x")})
		failed <- err
	}()
	proxy.Cut()
	wantCode(t, await(t, failed, "the failure"), protocol.CodeUnreachable)
}

func TestSilentServerEndsACall(t *testing.T) {
	s := natstest.Start(t)
	s.Connect(t, "")
	proxy := natstest.StartProxy(t, s)
	c := s.Dial(t, natswire.Config{URL: proxy.URL()})
	proxy.Freeze()
	defer proxy.Heal()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Last(ctx, c.Names().Log(), c.Names().LogSubject("app", "s1"))
	wantCode(t, err, protocol.CodeUnreachable, "no answer")
}

// After a cut the broker still holds the old requests for a moment. What is wanted must come once all the same.
func TestWantSurvivesACutAndIsNotDoubled(t *testing.T) {
	s := natstest.Start(t)
	direct := s.Connect(t, "")
	tool := ensure(t, direct, "tool")
	proxy := natstest.StartProxy(t, s)
	heard := make(notices, 64)
	c := s.Dial(t, natswire.Config{URL: proxy.URL(), Listener: func(n natswire.Notice) { heard <- n }})
	came := make(chan natswire.Delivery, 100)
	p, err := c.Pull(t.Context(), tool.Stream, tool.Durable, natswire.PullEvents{Deliver: func(d natswire.Delivery) { came <- d }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Want(3)
	for range 3 {
		proxy.Cut()
		heard.await(t, natswire.Disconnected)
		proxy.Heal()
		heard.await(t, natswire.Reconnected)
	}
	for range 10 {
		if _, err := direct.Publish(t.Context(), natswire.Msg{Subject: tool.Filter, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		await(t, came, "a wanted call")
	}
	// The broker has nothing of ours left to answer: what is not wanted stays with it.
	deadline := time.Now().Add(patience)
	for {
		state, err := direct.ConsumerState(t.Context(), tool.Stream, tool.Durable)
		if err != nil {
			t.Fatal(err)
		}
		if state.Waiting == 0 && state.AckPending == 3 && state.Pending+uint64(state.AckPending) == 10 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the consumer is %+v", state)
		}
	}
	if len(came) != 0 {
		t.Fatalf("%d calls came that nobody wanted", len(came))
	}
}

func TestAGapIsToldOnceSubscriptionsHearAgain(t *testing.T) {
	s := natstest.Start(t)
	direct := s.Connect(t, "")
	proxy := natstest.StartProxy(t, s)
	heardOf := make(notices, 64)
	c := s.Dial(t, natswire.Config{URL: proxy.URL(), Listener: func(n natswire.Notice) { heardOf <- n }})
	heard, gaps := make(chan natswire.Msg, 10), make(chan struct{}, 10)
	silence, err := c.Subscribe("gap", func(m natswire.Msg) { heard <- m })
	if err != nil {
		t.Fatal(err)
	}
	defer silence()
	stop := c.Missed(func() { gaps <- struct{}{} })
	proxy.Cut()
	heardOf.await(t, natswire.Disconnected)
	if len(gaps) != 0 {
		t.Error("a gap is told before it is over")
	}
	proxy.Heal()
	await(t, gaps, "word of the gap")
	if _, err := c.Last(t.Context(), c.Names().Log(), "gap"); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Fatal(err) // a look: what is published after it is heard
	}
	if err := direct.Emit(t.Context(), natswire.Msg{Subject: "gap"}); err != nil {
		t.Fatal(err)
	}
	await(t, heard, "what is published after the look")
	stop()
	heardOf.await(t, natswire.Reconnected)
	proxy.Cut()
	heardOf.await(t, natswire.Disconnected)
	proxy.Heal()
	heardOf.await(t, natswire.Reconnected)
	if len(gaps) != 0 {
		t.Error("a gap is told to somebody who does not listen any more")
	}
}

// A process that is stopped keeps its connection, and the broker takes what it sends there for delivered.
func TestStoppedProcessIsHandedNothingOnceALeaseIsOver(t *testing.T) {
	s := natstest.Start(t)
	direct := s.Connect(t, "")
	tool := ensure(t, direct, "tool")
	tool.AckWait = time.Second
	if err := direct.EnsureConsumer(t.Context(), tool); err != nil {
		t.Fatal(err)
	}
	proxy := natstest.StartProxy(t, s)
	c := s.Dial(t, natswire.Config{URL: proxy.URL()})
	stopped, err := c.Pull(t.Context(), tool.Stream, tool.Durable, natswire.PullEvents{Deliver: func(natswire.Delivery) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stopped.Close)
	waiting := func(n int) func(natswire.ConsumerState) bool {
		return func(st natswire.ConsumerState) bool { return st.Waiting == n }
	}
	stopped.Want(10)
	state(t, direct, tool, "a request", patience, waiting(1))
	proxy.Freeze()
	defer proxy.Heal()
	state(t, direct, tool, "no request any more", 15*time.Second, waiting(0))
	came := make(chan natswire.Delivery, 10)
	living, err := direct.Pull(t.Context(), tool.Stream, tool.Durable, natswire.PullEvents{Deliver: func(d natswire.Delivery) { came <- d }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(living.Close)
	living.Want(10)
	for range 3 {
		if _, err := direct.Publish(t.Context(), natswire.Msg{Subject: tool.Filter, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		d := await(t, came, "a call")
		if d.Attempt != 1 {
			t.Errorf("attempt %d, want the first", d.Attempt)
		}
		d.Ack()
	}
}

// state looks at a consumer until it is as wanted.
func state(t *testing.T, c *natswire.Conn, of natswire.Consumer, what string, within time.Duration, wanted func(natswire.ConsumerState) bool) {
	t.Helper()
	look, late := time.NewTicker(10*time.Millisecond), time.After(within)
	defer look.Stop()
	for {
		st, err := c.ConsumerState(t.Context(), of.Stream, of.Durable)
		if err != nil {
			t.Fatal(err)
		}
		if wanted(st) {
			return
		}
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("the consumer has not %s in %s: %+v", what, within, st)
		}
	}
}

func TestClosedConnectionLosesItsSubscriptions(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	tool := ensure(t, c, "tool")
	lost := make(chan error, 2)
	p, err := c.Pull(t.Context(), tool.Stream, tool.Durable, natswire.PullEvents{
		Deliver: func(natswire.Delivery) {}, Lost: func(err error) { lost <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Want(1)
	c.Close()
	wantCode(t, await(t, lost, "the loss"), protocol.CodeUnreachable)
	p.Close()
	_, err = c.Publish(t.Context(), natswire.Msg{Subject: tool.Filter})
	wantCode(t, err, protocol.CodeUnreachable)
	_, err = c.Pull(t.Context(), tool.Stream, tool.Durable, natswire.PullEvents{})
	wantCode(t, err, protocol.CodeUnreachable)
}

func TestMissingPermissionIsForbiddenAndNotATimeout(t *testing.T) {
	s := natstest.Start(t, natstest.Auth(func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "admin", Password: "pw"},
			{Username: "worker", Password: "pw", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{
					"tf.result.mine.>", "$JS.API.CONSUMER.INFO.CALLS.mine", "$JS.API.CONSUMER.MSG.NEXT.CALLS.mine", "$JS.ACK.CALLS.mine.>",
					"$JS.API.CONSUMER.INFO.CALLS.theirs",
				}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_worker.>", "tf.cancel.mine.*"}},
			}},
			{Username: "deaf", Password: "pw", Permissions: &server.Permissions{
				Subscribe: &server.SubjectPermission{Allow: []string{"tf.>"}},
			}},
		}
	}))
	admin := s.Dial(t, natswire.Config{URL: withUser(s, "admin", "pw")})
	if err := natswire.Provision(t.Context(), admin, natswire.ProvisionConfig{}); err != nil {
		t.Fatal(err)
	}
	ensure(t, admin, "mine")
	ensure(t, admin, "theirs")
	heard := make(notices, 64)
	w := s.Dial(t, natswire.Config{URL: withUser(s, "worker", "pw"), Listener: func(n natswire.Notice) { heard <- n }})
	n := w.Names()

	// What it may do works.
	came, lost := make(chan natswire.Delivery, 1), make(chan error, 2)
	on := natswire.PullEvents{Deliver: func(d natswire.Delivery) { came <- d }, Lost: func(err error) { lost <- err }}
	p, err := w.Pull(t.Context(), n.Calls(), "mine", on)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Want(1)
	if _, err := admin.Publish(t.Context(), natswire.Msg{Subject: n.CallSubject("mine"), Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	await(t, came, "a call of its own tool").Ack()
	if _, err := w.Publish(t.Context(), natswire.Msg{Subject: n.ResultSubject("mine", "s", "c", 0), Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	stop, err := w.Subscribe(n.CancelSubject("mine", "*"), func(natswire.Msg) {})
	if err != nil {
		t.Fatal(err)
	}
	stop()

	// What it may not do is refused by name, long before the hour is over.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	_, err = w.Publish(ctx, natswire.Msg{Subject: n.ResultSubject("theirs", "s", "c", 0), Data: []byte("x")})
	wantCode(t, err, protocol.CodeForbidden, n.ResultSubject("theirs", "s", "c", 0))
	if got := heard.await(t, natswire.Denied); protocol.CodeOf(got.Err) != protocol.CodeForbidden {
		t.Fatalf("the notice says %v", got.Err)
	}
	_, err = w.Last(ctx, n.Calls(), n.CallSubject("mine"))
	wantCode(t, err, protocol.CodeForbidden, "STREAM.MSG.GET.CALLS")
	_, err = w.Read(ctx, n.Calls(), n.CallSubject("mine"), 0, 1)
	wantCode(t, err, protocol.CodeForbidden)
	wantCode(t, w.Purge(ctx, n.Calls(), n.CallSubject("mine"), 0), protocol.CodeForbidden)
	_, err = w.Subscribe(n.CallSubject("*"), func(natswire.Msg) {})
	wantCode(t, err, protocol.CodeForbidden, n.CallSubject("*"))
	p, err = w.Pull(ctx, n.Calls(), "theirs", on)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Want(1)
	wantCode(t, await(t, lost, "the refused pull"), protocol.CodeForbidden)

	_, err = natswire.Connect(ctx, natswire.Config{URL: withUser(s, "deaf", "pw")})
	wantCode(t, err, protocol.CodeForbidden, "_INBOX_deaf")
}

func TestFullStreamIsNotAnAnsweredMailbox(t *testing.T) {
	s := natstest.Start(t)
	c := s.Dial(t, natswire.Config{})
	n := c.Names()
	if err := natswire.Provision(t.Context(), c, natswire.ProvisionConfig{MaxBytes: 4096, QueueLimit: 2}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Publish(t.Context(), natswire.Msg{Subject: n.CallSubject("busy"), Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Publish(t.Context(), natswire.Msg{Subject: n.CallSubject("busy"), Data: []byte("x")})
	wantCode(t, err, protocol.CodeStorageFull)
	if _, err := c.Publish(t.Context(), natswire.Msg{Subject: n.CallSubject("idle"), Data: []byte("x")}); err != nil {
		t.Fatalf("one tool's backlog blocks another: %v", err)
	}
	big := make([]byte, 3000)
	if _, err := c.Publish(t.Context(), natswire.Msg{Subject: n.ResultSubject("tool", "s", "c1", 0), Data: big}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Publish(t.Context(), natswire.Msg{Subject: n.ResultSubject("tool", "s", "c2", 0), Data: big})
	wantCode(t, err, protocol.CodeStorageFull)
}

// Somebody deletes the stream with its consumers: nobody listens for pull requests any more.
func TestDeletedStreamLosesTheSubscription(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	tool := ensure(t, c, "tool")
	lost := make(chan error, 1)
	p, err := c.Pull(t.Context(), tool.Stream, tool.Durable, natswire.PullEvents{
		Deliver: func(natswire.Delivery) {}, Lost: func(err error) { lost <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), tool.Stream); err != nil {
		t.Fatal(err)
	}
	p.Want(1)
	wantCode(t, await(t, lost, "the loss"), protocol.CodeConsumerGone)
	_, err = c.Publish(t.Context(), natswire.Msg{Subject: tool.Filter})
	wantCode(t, err, protocol.CodeUnreachable, "not provisioned")
}
