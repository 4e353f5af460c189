package integration

import (
	"slices"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// Single messages that are lost, doubled or late on their way from the broker.

// behind dials through a proxy of its own.
func (f *fabric) behind() (*natstest.Proxy, *natswire.Conn) {
	f.t.Helper()
	p := natstest.StartProxy(f.t, f.server)
	return p, f.server.Dial(f.t, natswire.Config{URL: p.URL()})
}

func TestAppendWhoseAckWasLostStandsOnce(t *testing.T) { // K6
	t.Parallel()
	for name, losses := range map[string]int{"of the adoption": 1, "of the adoption and of both turns": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			p := provide(t, []byte(twoSteps), nil)
			proxy, conn := f.behind()
			f.coordinateOn(conn, conn, newAgent(t, "app", p.llm, "slow"))
			g := gated("slow", `{"v":1}`, tool.Settings{Effect: tool.AtMostOnce})
			f.work(g)
			var lost []*natstest.Catch
			for range losses { // one after the other
				lost = append(lost, proxy.Drop(natstest.Acks, f.conn.Names().LogSubject("app", "*")))
			}
			r := f.send(t.Context(), "app", "", "go")
			receive(t, "start of the call", g.started)
			g.open()
			out := f.wait(r)
			if out.Problem != nil {
				t.Fatalf("the run failed: %+v", out.Problem)
			}
			contains(t, "the answer", out.Text, "finished")
			for _, l := range lost {
				receive(t, "lost ack", l.Caught())
			}
			g.wantRuns(t, 1)
			p.wantCount(2)
			log := f.log("app", r.Session)
			if n := len(adoptions(log)); n != 1 || len(turns(log)) != 2 {
				t.Errorf("the log holds %d adoptions and %d turns, want 1 and 2", n, len(turns(log)))
			}
			var ids []string
			for _, e := range log {
				if slices.Contains(ids, e.Event.ID) {
					t.Errorf("event %s stands twice", e.Event.ID)
				}
				ids = append(ids, e.Event.ID)
			}
		})
	}
}

func TestResultWhoseAckWasLostIsStoredOnceAndKnownAsStored(t *testing.T) { // K15
	t.Parallel()
	f := newFabric(t)
	f.coordinate()
	s := answering("pay", `{"v":1}`, tool.AtMostOnce)
	settled := make(chan worker.Settlement, 10)
	proxy, conn := f.behind()
	f.workOn(conn, conn, worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { settled <- s }}, s)
	lost := proxy.Drop(natstest.Acks, f.conn.Names().Namespace()+".result.pay.>")
	done := f.called("pay", `{}`)
	receive(t, "lost ack", lost.Caught())
	end := receive(t, "end of the call", done)
	if end.err != nil || end.Outcome != protocol.OutcomeCompleted || end.Attempt != 1 {
		t.Errorf("the call ended with %+v, %v", end.Result, end.err)
	}
	if s := receive(t, "settlement", settled); s.Way != worker.Refused && s.Way != worker.Answered {
		t.Errorf("the message was %s, want settled as answered", s.Way)
	}
	s.wantRuns(t, 1)
	f.eventually("empty queue", func() bool { return f.queued("pay") == 0 })
}

func TestDeliveryThatCameTwiceIsHandledOnce(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(twoSteps), nil)
	n := f.conn.Names()
	proxyC, connC := f.behind()
	proxyW, connW := f.behind()
	f.coordinateOn(connC, connC, newAgent(t, "app", p.llm, "slow"))
	s := answering("slow", `{"v":1}`, tool.Idempotent)
	f.workOn(connW, connW, worker.Events{}, s)
	input := proxyC.Duplicate(natstest.Deliveries, n.InputSubject("app", "*", "*"))
	call := proxyW.Duplicate(natstest.Deliveries, n.CallSubject("slow"))
	r := f.send(t.Context(), "app", "", "go")
	contains(t, "the answer", f.wait(r).Text, "finished")
	receive(t, "doubled input", input.Caught())
	receive(t, "doubled call", call.Caught())
	s.wantRuns(t, 1)
	p.wantCount(2)
	inputs := 0
	for _, e := range f.log("app", r.Session) {
		inputs += len(e.Event.Inputs)
	}
	if inputs != 1 {
		t.Errorf("the input was folded %d times", inputs)
	}
}

func TestCallThatComesAfterItsLeaseChangesNothing(t *testing.T) {
	for _, effect := range []tool.Effect{tool.AtMostOnce, tool.Idempotent} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			f.coordinate()
			work := answering("work", `{"v":1}`, effect)
			settled := make(chan worker.Settlement, 10)
			proxy, conn := f.behind()
			f.workOn(conn, conn, worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { settled <- s }}, work)
			held := proxy.Hold(natstest.Deliveries, f.conn.Names().CallSubject("work"))
			done := f.called("work", `{}`)
			receive(t, "held call", held.Caught())
			end := receive(t, "end of the call", done)
			if end.err != nil || end.Outcome != protocol.OutcomeCompleted || end.Attempt != 2 {
				t.Errorf("the call ended with %+v, %v", end.Result, end.err)
			}
			if s := receive(t, "settlement", settled); s.Way != worker.Answered {
				t.Errorf("the delivery that came was %s, want answered", s.Way)
			}
			held.Release()                  // its lease is over: another delivery was settled
			want, runs := worker.Refused, 2 // the first result wins
			if effect == tool.AtMostOnce {
				want, runs = worker.Dropped, 1 // the claim is taken
			}
			if s := receive(t, "settlement of the late one", settled); s.Way != want {
				t.Errorf("the late delivery was %s, want %s", s.Way, want)
			}
			work.wantRuns(t, runs)
		})
	}
}

func TestInputThatComesAfterItsLeaseIsFoldedOnce(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	close(m.release)
	a := newAgent(t, "app", m)
	proxy, conn := f.behind()
	f.coordinateOn(conn, conn, a)
	contains(t, "the answer", f.ask("app", "s1", "before").Text, "answer to before")
	held := proxy.Hold(natstest.Deliveries, f.conn.Names().InputSubject("app", "*", "*"))
	r := f.send(t.Context(), "app", "s2", "go")
	receive(t, "held input", held.Caught())
	other := f.coordinate(a)
	contains(t, "the answer", f.wait(r).Text, "answer to go")
	held.Release() // its lease is over: another one took it
	contains(t, "the answer to the next", f.ask("app", "s2", "again").Text, "answer to again")
	log := f.log("app", "s2")
	inputs := 0
	for _, e := range log {
		inputs += len(e.Event.Inputs)
	}
	if inputs != 2 || len(turns(log)) != 2 || !slices.Contains(adoptions(log), other.id) {
		t.Errorf("the log holds %d inputs and %d turns, and was driven by %v; want 2 and 2, and %s among them", inputs, len(turns(log)), adoptions(log), other.id)
	}
}
