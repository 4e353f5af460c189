package integration

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// begun starts a run whose only call is running, and tells who of two coordinators drives it.
func begun(t *testing.T, f *fabric, effect tool.Effect) (g *gate, r client.Receipt, owner, other *member, asked *provider) {
	t.Helper()
	p := provide(t, []byte(twoSteps), nil)
	g = gated("slow", `{"v":1}`, tool.Settings{Effect: effect})
	a := newAgent(t, "app", p.llm, "slow")
	one := f.coordinate(a)
	f.work(g)
	two := f.coordinate(a) // knows the tool from its start
	r = f.send(t.Context(), "app", "", "go")
	receive(t, "start of the call", g.started)
	owner, other = one, two
	if adoptions(f.log("app", r.Session))[0] == two.id {
		owner, other = two, one
	}
	return g, r, owner, other, p
}

const twoSteps = `
turns:
  - {parts: [{functionCall: {name: slow, id: s}}], finishReason: STOP}
  - {parts: [{text: finished}], finishReason: STOP}
  - {parts: [{text: finished again}], finishReason: STOP}
`

func TestRunOutlivesItsCoordinator(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	g, r, owner, other, p := begun(t, f, tool.AtMostOnce)
	owner.die()
	g.open()
	out := f.wait(r)
	if out.Problem != nil {
		t.Fatalf("the run failed: %+v", out.Problem)
	}
	contains(t, "the answer", out.Text, "finished")
	g.wantRuns(t, 1)
	p.wantCount(2)
	same(t, "who drove the session", adoptions(f.log("app", r.Session)), []string{owner.id, other.id})
	if n := len(answers(f.log("app", r.Session))); n != 1 {
		t.Errorf("the log holds %d answers, want one", n)
	}
}

func TestRunOutlivesItsCoordinatorWhileTheModelAnswers(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	a := newAgent(t, "app", m)
	one, two := f.coordinate(a), f.coordinate(a)
	r := f.send(t.Context(), "app", "", "go")
	receive(t, "question", m.asked)
	owner, other := one, two
	if adoptions(f.log("app", r.Session))[0] == two.id {
		owner, other = two, one
	}
	owner.die()
	close(m.release)
	out := f.wait(r)
	if out.Problem != nil {
		t.Errorf("the run failed: %+v", out.Problem)
	}
	contains(t, "the answer", out.Text, "answer to go")
	if out.Problem != nil {
		t.Errorf("the run failed: %+v", out.Problem)
	}
	contains(t, "the answer", out.Text, "answer to go")
	same(t, "who drove the session", adoptions(f.log("app", r.Session)), []string{owner.id, other.id})
	if n := len(turns(f.log("app", r.Session))); n != 1 {
		t.Errorf("the log holds %d turns, want one: what the first coordinator heard is nobody's", n)
	}
}

// handover is less than the lease of what tells that a session is free, and far less than what its guard waits for.
const handover = 4 * time.Second

func TestDrainedCoordinatorHandsItsRunOverAtOnce(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	g, r, owner, other, p := begun(t, f, tool.AtMostOnce)
	owner.stop()
	second := f.until("app", r.Session, "second adoption", func(ev *protocol.Event) bool { return ev.Adopt != nil && ev.Adopt.Coordinator == other.id })
	g.open()
	out := f.wait(r)
	contains(t, "the answer", out.Text, "finished")
	g.wantRuns(t, 1)
	p.wantCount(2)
	log := f.log("app", r.Session)
	i := slices.IndexFunc(log, func(e client.Entry) bool { return e.Event.Stop != nil && e.Event.Stop.Kind == protocol.StopDrained })
	if i < 0 {
		t.Fatalf("no stop of kind drained: %+v", log)
	}
	if took := second.Time.Sub(log[i].Time); took > handover {
		t.Errorf("the other coordinator took over %s after the drain, as if it had died", took)
	}
	call := turns(log)[0].Calls[0].ID // a worker may have it before its publisher hears that it is stored
	if sent := log[i].Event.Stop.Dispatched; len(sent) > 1 || len(sent) == 1 && sent[call] == (protocol.Dispatch{}) {
		t.Errorf("the stop names %v as dispatched, want %s or nothing", sent, call)
	}
}

func TestInputToASessionOfAnotherCoordinatorIsPassedOn(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	g, r, owner, _, p := begun(t, f, tool.AtMostOnce)
	var later []client.Receipt
	for range 6 { // of two pulling coordinators both get some
		later = append(later, f.send(t.Context(), "app", r.Session, "and this"))
	}
	for _, l := range later {
		f.until("app", r.Session, "fold of an input", func(ev *protocol.Event) bool {
			return slices.ContainsFunc(ev.Inputs, func(in protocol.FoldedInput) bool { return in.ID == l.InputID })
		})
	}
	g.open()
	for _, l := range append(later, r) {
		contains(t, "the answer", f.wait(l).Text, "finished")
	}
	g.wantRuns(t, 1)
	p.wantCount(2)
	same(t, "who drove the session", adoptions(f.log("app", r.Session)), []string{owner.id})
}

func TestServerRestartInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`
turns:
  - parts: [{functionCall: {name: once, id: a}}, {functionCall: {name: again, id: b}}]
    finishReason: STOP
  - {parts: [{text: finished}], finishReason: STOP}
`), nil)
	once, again := gated("once", `{"v":1}`, tool.Settings{Effect: tool.AtMostOnce}), gated("again", `{"v":2}`, tool.Settings{Effect: tool.Idempotent})
	f.coordinate(newAgent(t, "app", p.llm, "once", "again"))
	f.work(once, again)
	r := f.send(t.Context(), "app", "", "go")
	receive(t, "start of the first call", once.started)
	receive(t, "start of the second call", again.started)
	f.server.Stop(t)
	once.open()
	again.open()
	f.server.Restart(t)
	out := f.wait(r)
	if out.Problem != nil {
		t.Fatalf("the run failed: %+v", out.Problem)
	}
	contains(t, "the answer", out.Text, "finished")
	once.wantRuns(t, 1)
	p.wantCount(2)
	wantJSON(t, "the first response", mustString(t, p.response(2, 0)), `{"v":1}`)
	wantJSON(t, "the second response", mustString(t, p.response(2, 1)), `{"v":2}`)
}

func TestDeletedConsumerOfAPoolComesBack(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	f.coordinate()
	var runs atomic.Int32
	f.work(adder(t, &runs, tool.Idempotent))
	if _, err := f.call("add", `{"a":1,"b":2}`); err != nil {
		t.Fatal(err)
	}
	f.deleteConsumer(f.conn.Names().Calls(), "add")
	r, err := f.call("add", `{"a":20,"b":22}`)
	if err != nil || string(r.Value) != `{"result":42}` {
		t.Errorf("the call after the deletion ended with %s %s, %v", r.Outcome, r.Value, err)
	}
}

func TestDeletedConsumerOfInputsComesBack(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	close(m.release)
	f.coordinate(newAgent(t, "app", m))
	f.ask("app", "", "first")
	f.deleteConsumer(f.conn.Names().Input(), "app")
	contains(t, "the answer", f.ask("app", "", "second").Text, "answer to second")
}

// deleteConsumer does what an operator's slip does.
func (f *fabric) deleteConsumer(stream, durable string) {
	f.t.Helper()
	m, err := f.conn.Request(f.t.Context(), natswire.Msg{Subject: "$JS.API.CONSUMER.DELETE." + stream + "." + durable})
	if err != nil {
		f.t.Fatal(err)
	}
	contains(f.t, "the broker's answer", string(m.Data), `"success":true`)
}
