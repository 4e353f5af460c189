package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

// unseen are the violations that a history without what left the work queues, and without a ledger of models, shows in any
// case: that adoptions had no guard, that calls were never published, and that turns are nobody's answers.
func unseen(v sim.Violation) bool {
	return v.ID == "I13" || v.ID == "I27" || v.ID == "I7" && strings.Contains(v.Text, "without a guard")
}

// modelCalls is the limit of a run that llmagent has.
const modelCalls = 50

// quiet waits until no queue holds anything: inputs, guards and calls are all settled.
func (p *place) quiet() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		left := p.left()
		if len(left) == 0 {
			return
		}
		if natswire.Sleep(ctx, natswire.SystemClock{}, 100*time.Millisecond) != nil {
			p.t.Fatalf("the queues do not become empty: %v\n%s", left, p.stuck())
		}
	}
}

// stuck tells what INPUT holds and how far its consumer is.
func (p *place) stuck() string {
	n := p.conn.Names()
	state, err := p.conn.ConsumerState(p.t.Context(), n.Input(), "helper")
	text := fmt.Sprintf("consumer of %s: %d to come, %d unacked, %d the newest delivered (%v)", n.Input(), state.Pending, state.AckPending, state.Delivered, err)
	msgs, err := p.conn.Read(p.t.Context(), n.Input(), n.InputFilter("helper"), 1, 1000)
	for _, m := range msgs {
		_, _, session, _ := n.ParseInput(m.Subject)
		log, lerr := p.client.Log(p.t.Context(), "helper", session, 0)
		text += fmt.Sprintf("\ninput %d of session %s, whose log has %d events (%v)", m.Seq, session, len(log), lerr)
	}
	return fmt.Sprint(text, "\n", err)
}

// left is how many messages each work queue holds, without the sentinels. A broker whose disk was full may keep some that it
// knows were acked: of those only what its consumers still owe counts.
func (p *place) left() map[string]int {
	p.t.Helper()
	n, left := p.conn.Names(), map[string]int{}
	for _, q := range []struct{ stream, filter, durable string }{
		{n.Input(), n.InputFilter("helper"), "helper"}, {n.Timers(), n.TimerSubject("helper", "*", "*"), "helper"},
		{n.Timers(), n.DueFilter("helper"), "helper"},
		{n.Calls(), n.CallSubject("note"), "note"}, {n.Calls(), n.CallSubject("pay"), "pay"}, {n.Calls(), n.CallSubject("bulk"), "bulk"},
		{n.Calls(), n.CallSubject("wire"), "wire"}, {n.Calls(), n.CallSubject("report"), "report"},
	} {
		msgs, err := p.conn.Read(p.t.Context(), q.stream, q.filter, 1, 1000)
		if err != nil {
			p.t.Fatal(err)
		}
		msgs = slices.DeleteFunc(msgs, func(m natswire.Stored) bool { // one that outlives its park finds it superseded
			var g protocol.Guard
			return q.stream == n.Timers() && json.Unmarshal(m.Data, &g) == nil && g.Park
		})
		count := len(msgs)
		if count > 0 && p.residue {
			state, err := p.conn.ConsumerState(p.t.Context(), q.stream, q.durable)
			if err != nil {
				p.t.Fatal(err)
			}
			count = int(state.Pending) + state.AckPending
		}
		if count > 0 {
			left[q.stream] += count
		}
	}
	listed, err := p.conn.Latest(p.t.Context(), n.ParkStream(), n.ParkSubject("*", "*", "*"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range listed {
		if !natswire.KeyDeleted(m.Header) {
			left[n.ParkStream()]++
		}
	}
	return left
}

// judge checks what the streams and the ledger hold, once all is quiet.
func (p *place) judge() {
	p.t.Helper()
	n := p.conn.Names()
	h := sim.History{Names: n, Left: p.left(), ModelCalls: modelCalls}
	for _, s := range p.sent {
		data, err := json.Marshal(protocol.Input{V: protocol.Version, ID: s.InputID, Kind: protocol.InputMessage, Content: json.RawMessage(`{}`)})
		if err != nil {
			p.t.Fatal(err)
		}
		h.Records = append(h.Records, sim.Record{Stream: n.Input(), Acked: true, Stored: natswire.Stored{
			Subject: n.InputSubject(s.App, "tester", s.Session), Data: data, Seq: s.Seq,
		}})
	}
	for _, stream := range []string{n.Log(), n.Results(), n.Wake(), n.Approval(), n.DeadLetters()} {
		msgs, err := p.conn.Read(p.t.Context(), stream, ">", 1, 100_000)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, m := range msgs {
			h.Records = append(h.Records, sim.Record{Stream: stream, Stored: m, Acked: true})
		}
	}
	slices.SortStableFunc(h.Records, func(a, b sim.Record) int { return a.Time.Compare(b.Time) })
	p.mu.Lock()
	h.Receipts = slices.Clone(p.told)
	p.mu.Unlock()
	for _, e := range p.effects() {
		after := slices.IndexFunc(h.Records, func(r sim.Record) bool { return r.Time.After(e.At) })
		if after < 0 {
			after = len(h.Records)
		}
		h.Starts = append(h.Starts, sim.Started{Call: e.Call, Tool: e.Tool, Args: e.Args, At: after})
	}
	for _, v := range sim.CheckQuiet(h) {
		if !unseen(v) {
			p.t.Error(v)
		}
	}
}

// judgeCalls checks how the calls of a session ended. A call that may not be repeated may end in doubt if its worker could
// have died with it.
func (p *place) judgeCalls(s sent, doubt bool) {
	p.t.Helper()
	log, err := p.client.Log(p.t.Context(), s.App, s.Session, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	calls, ended := answers(log)
	effects := map[string]int{}
	_, what, _ := strings.Cut(s.text, " ")
	for _, e := range p.effects() {
		effects[e.Call]++
		if c, ok := calls[e.Call]; ok && (c.Tool != e.Tool || !strings.Contains(string(e.Args), what)) {
			p.t.Errorf("call %s of %s %s had the effect of %s %s", e.Call, c.Tool, c.Args, e.Tool, e.Args)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(calls)) {
		c, a := calls[id], ended[id]
		switch right := strings.HasPrefix(string(a.Value), value(c.Tool, what)); {
		case a.Outcome == protocol.OutcomeCompleted && (right || a.Body != nil) && effects[id] > 0:
		case c.Tool == "pay" && doubt && a.Outcome == protocol.OutcomeUnknown:
		default:
			p.t.Errorf("call %s of %s %s ended as %q with %.100s after %d effects", id, c.Tool, c.Args, a.Outcome, a.Value, effects[id])
		}
	}
}
