package client

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// question is the record of a call of transfer that waits for a decision.
func question(session, call, confirmation, args string) protocol.Parked {
	c := protocol.Call{ID: call, Tool: "transfer", Args: json.RawMessage(args), Digest: "d1"}
	expires := int64(2_000_000_000_000)
	return protocol.Parked{
		V: protocol.Version, App: "helper", Session: session, User: "ann", Agent: "helper", Call: call, Tool: c.Tool, Digest: c.Digest,
		Effect: protocol.EffectAtMostOnce, Args: c.Args, Since: 1_700_000_000_000, Until: expires, Seq: 1,
		Reply: "tf.approval.helper." + session + "." + confirmation + ".*",
		Confirmation: &protocol.Confirmation{
			ID: confirmation, Hint: "May it?", Origin: protocol.OriginFlag, Expires: expires,
			Digest: protocol.ConfirmationDigest(session, &c, c.Args, expires, confirmation),
		},
	}
}

// report is the record of a call of report that waits for its result in round 1.
func report(session, call string) protocol.Parked {
	return protocol.Parked{
		V: protocol.Version, App: "helper", Session: session, User: "bob", Agent: "helper", Call: call, Round: 1, Tool: "report", Digest: "d2",
		Effect: protocol.EffectRead, Args: json.RawMessage(`{}`), Since: 1_700_000_000_000, Until: 2_000_000_000_000, Seq: 1,
		Reply: "tf.wake.helper.report." + session + "." + call + ".1",
	}
}

// park puts a record into the index, as a coordinator does.
func (f *fabric) park(p protocol.Parked) Parked {
	f.t.Helper()
	data, err := protocol.Encode(p)
	if err != nil {
		f.t.Fatal(err)
	}
	ack := f.publish(natswire.Msg{Subject: f.conn.Names().ParkSubject(p.App, p.Session, p.Call), Data: data})
	return Parked{Parked: p, Revision: ack.Seq}
}

// unpark removes a record and leaves its marker.
func (f *fabric) unpark(app, session, call string) {
	f.t.Helper()
	f.publish(natswire.DeleteKey(f.conn.Names().ParkSubject(app, session, call)))
}

func calls(list []Parked) string {
	var ids []string
	for _, p := range list {
		ids = append(ids, p.Call)
	}
	return strings.Join(ids, " ")
}

func TestParkedCallsAreListedInPages(t *testing.T) {
	f := newFabric(t)
	for i := range 5 {
		f.park(question(fmt.Sprintf("s%d", i), fmt.Sprintf("c%d", i), fmt.Sprintf("q%d", i), `{}`))
	}
	f.unpark("helper", "s1", "c1")
	f.park(report("s9", "r1"))
	f.publish(natswire.Msg{Subject: f.conn.Names().ParkSubject("helper", "s7", "liar"), Data: encode(t, question("s8", "liar", "q", `{}`))})
	f.publish(natswire.Msg{Subject: f.conn.Names().ParkSubject("helper", "s7", "broken"), Data: []byte("{")})
	var got []string
	for from := uint64(0); ; {
		page, err := f.Parked(t.Context(), ParkedFilter{}, from, 2)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, calls(page.Parked))
		if from = page.Next; from == 0 {
			break
		}
	}
	if want := []string{"c0 c2", "c3 c4", "r1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for want, filter := range map[string]ParkedFilter{
		"c0 c2 c3 c4":    {Kind: WaitsConfirmation},
		"r1":             {Kind: WaitsResult},
		"c2":             {App: "helper", Session: "s2"},
		"c3":             {Session: "s3"},
		"r1 ":            {User: "bob"},
		"r1  ":           {Tool: "report"},
		"c0 c2 c3 c4 r1": {App: "helper"},
		"":               {App: "other"},
	} {
		page, err := f.Parked(t.Context(), filter, 0, 0)
		if err != nil || calls(page.Parked) != strings.TrimSpace(want) || page.Next != 0 {
			t.Errorf("%+v: %q, %v", filter, calls(page.Parked), err)
		}
	}
	for filter, code := range map[ParkedFilter]protocol.Code{{Kind: "people"}: protocol.CodeUsage, {App: "a b"}: protocol.CodeBadName, {Session: "a.b"}: protocol.CodeBadID} {
		_, err := f.Parked(t.Context(), filter, 0, 0)
		wantCode(t, err, code)
	}
}

func TestAWaitingCallIsFoundByEveryNameItHas(t *testing.T) {
	f := newFabric(t)
	f.park(question("s1", "call-of-ann", "question-of-ann", `{"a":1}`))
	f.park(report("s2", "call-of-bob"))
	for id, want := range map[string]string{
		"call-of-ann": "call-of-ann", "question-of-ann": "call-of-ann", "call-of-bob": "call-of-bob",
		"tf.approval.helper.s1.question-of-ann.*": "call-of-ann", "tf.approval.helper.s1.question-of-ann.zoe": "call-of-ann",
		"tf.wake.helper.report.s2.call-of-bob.1": "call-of-bob",
	} {
		if p, err := f.FindParked(t.Context(), id); err != nil || p.Call != want {
			t.Errorf("%s: %s, %v", id, p.Call, err)
		}
	}
	for id, want := range map[string]string{
		"call-of-amn": "did you mean call-of-ann?", "something-else": "toolfabric calls ls",
		"tf.approval.helper.s2.question-of-ann.*": "no call question-of-ann waits",
	} {
		_, err := f.FindParked(t.Context(), id)
		wantCode(t, err, protocol.CodeNotFound)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
	_, err := f.FindParked(t.Context(), "a b")
	wantCode(t, err, protocol.CodeBadID)
}

func TestACallThatEndedIsNotFoundAndSaysSo(t *testing.T) {
	f := newFabric(t)
	n := f.conn.Names()
	f.park(report("s1", "c1"))
	f.unpark("helper", "s1", "c1")
	_, err := f.FindParked(t.Context(), "c1")
	wantCode(t, err, protocol.CodeNotFound)
	if !strings.Contains(err.Error(), "does not wait any more") {
		t.Error(err)
	}
	result := func(o protocol.Outcome) []byte {
		return encode(t, protocol.Result{V: protocol.Version, Outcome: o, Value: json.RawMessage(`{}`), Worker: "w1"})
	}
	f.publish(natswire.Msg{Subject: n.WakeSubject("helper", "report", "s1", "c1", 1), Data: result(protocol.OutcomeCancelled)})
	f.publish(natswire.Msg{Subject: n.ResultSubject("report", "s1", "c1", 0), Data: result(protocol.OutcomePending)})
	_, err = f.FindParked(t.Context(), "c1")
	wantCode(t, err, protocol.CodeNotFound)
	if !strings.Contains(err.Error(), "it ended as cancelled") {
		t.Error(err)
	}
	ends, err := f.CallEnds(t.Context(), "c1")
	if err != nil || len(ends) != 2 || ends[0].Round != 0 || ends[1].App != "helper" || ends[1].Result.Outcome != protocol.OutcomeCancelled {
		t.Errorf("%+v, %v", ends, err)
	}
}

func TestAChangedByteIsNotVerified(t *testing.T) {
	p := Parked{Parked: question("s1", "c1", "q1", `{"amount":5}`)}
	if !p.Verified() {
		t.Error("what a coordinator writes is not verified")
	}
	for name, change := range map[string]func(*Parked){
		"arguments": func(p *Parked) { p.Args = json.RawMessage(`{"amount":50}`) },
		"session":   func(p *Parked) { p.Session = "s2" },
		"call":      func(p *Parked) { p.Call = "c2" },
		"tool":      func(p *Parked) { p.Tool = "other" },
		"version":   func(p *Parked) { p.Digest = "d9" },
	} {
		changed := p
		change(&changed)
		if changed.Verified() {
			t.Errorf("another %s is verified", name)
		}
	}
}

func TestAWatchTellsWhatWaitsAndThenWhatComesAndGoes(t *testing.T) {
	f := newFabric(t)
	f.park(question("s1", "c1", "q1", `{}`))
	f.park(report("s2", "r1"))
	f.park(question("s3", "c3", "q3", `{}`))
	f.unpark("helper", "s3", "c3")
	var got []string
	for u, err := range f.WatchParked(soon(t), ParkedFilter{Kind: WaitsConfirmation}, 0) {
		switch {
		case err != nil:
			t.Fatal(err)
		case u.Current:
			got = append(got, "current")
			f.park(question("s4", "c4", "q4", `{}`))
		case u.Parked != nil:
			got = append(got, "+"+u.Parked.Call)
			if u.Parked.Call == "c4" {
				f.unpark("helper", "s1", "c1")
			}
		case u.Gone != nil:
			got = append(got, "-"+u.Gone.Call)
		}
		if len(got) == 4 {
			break
		}
	}
	if want := []string{"+c1", "current", "+c4", "-c1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, err := range f.WatchParked(t.Context(), ParkedFilter{Kind: "people"}, 0) {
		wantCode(t, err, protocol.CodeUsage)
	}
}
