package client

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func (f *fabric) bury(kind, id string, l protocol.DeadLetter) {
	f.t.Helper()
	data, err := l.Encode()
	if err != nil {
		f.t.Fatal(err)
	}
	f.publish(natswire.Msg{Subject: f.conn.Names().DeadLetterSubject(kind, id), Data: data})
}

func envelope(call string, effect protocol.Effect) protocol.Envelope {
	return protocol.Envelope{V: protocol.Version, App: "helper", Session: "s1", Call: call, Tool: "hash", Digest: "d", Effect: effect, Args: json.RawMessage(`{"a":1}`)}
}

func TestDeadLettersAreListedShownAndDropped(t *testing.T) {
	f := newFabric(t)
	n := f.conn.Names()
	f.bury(LetterInput, "i1", protocol.DeadLetter{Code: protocol.CodeBadMessage, Reason: "no JSON", Stream: "INPUT", Subject: "tf.input.helper.local.s1", Seq: 3, Data: []byte("\xff{")})
	f.bury(LetterCall, "poisoned", protocol.DeadLetter{Code: protocol.CodePoison, Tool: "hash", Call: "poisoned"})
	waits := f.publish(natswire.Msg{Subject: n.CallSubject("hash"), Data: encode(t, envelope("stuck", protocol.EffectRead))})
	advise := func(kind string, seq uint64) {
		data := []byte(`{"stream":"CALLS","consumer":"hash","stream_seq":` + strconv.FormatUint(seq, 10) + `,"deliveries":5,"reason":"no call"}`)
		f.publish(natswire.Msg{Subject: n.AdvisorySubject(kind, "hash"), Data: data})
	}
	advise(natswire.AdvisoryMaxDeliveries, waits.Seq)
	advise(natswire.AdvisoryMaxDeliveries, 999) // settled: a record has it
	advise(natswire.AdvisoryTerminated, 55)
	f.bury(LetterCall, "56", protocol.DeadLetter{Code: protocol.CodeBadMessage, Seq: 56})
	advise(natswire.AdvisoryTerminated, 56) // the worker's record says the same
	f.publish(natswire.Msg{Subject: n.DeadLetterSubject("call", "junk"), Data: []byte("junk")})

	var got []string
	for from := uint64(0); ; {
		page, err := f.DeadLetters(t.Context(), from, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Letters {
			got = append(got, l.Kind+" "+l.ID+" "+string(l.Code))
		}
		if from = page.Next; from == 0 {
			break
		}
	}
	want := "input i1 bad_message, call poisoned poison, advisory 3 poison, advisory 5 bad_message, call 56 bad_message, call junk bad_message"
	if strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", strings.Join(got, ", "), want)
	}
	if l, err := f.DeadLetter(t.Context(), "3"); err != nil || l.Call != "stuck" || l.Session != "s1" {
		t.Errorf("%+v, %v", l, err)
	}
	l, err := f.DeadLetter(t.Context(), "i1")
	if err != nil || l.Number != 1 || string(l.Data) != "\xff{" {
		t.Fatalf("%+v, %v", l, err)
	}
	if err := f.DropLetter(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for id, say := range map[string]string{"1": "no dead letter 1;", "i1": "dlq ls", "poisonet": "did you mean poisoned?", "4": "no dead letter 4;"} {
		_, err := f.DeadLetter(t.Context(), id)
		wantCode(t, err, protocol.CodeNotFound)
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestOnlyWhatIsSafeIsRetried(t *testing.T) {
	f := newFabric(t)
	f.serve("helper")
	f.serve(protocol.CallsApp)
	n := f.conn.Names()
	claim := func(call string, c protocol.Claim) {
		if err := natswire.StoreClaim(t.Context(), f.conn, n, "hash", call, 0, protocol.NewID(), c); err != nil {
			t.Fatal(err)
		}
	}
	claim("ran", protocol.Claim{Worker: "w1"})
	claim("unrun", protocol.Claim{Coordinator: "c1"})
	claim("gated", protocol.Claim{Worker: "w1"})
	gated := envelope("gated", protocol.EffectRead)
	gated.Confirmation = &protocol.Confirmed{ID: "q", Confirmed: true}
	input := encode(t, protocol.Input{V: protocol.Version, ID: "in", Kind: protocol.InputMessage, Content: json.RawMessage(`{}`)})
	for _, c := range []struct {
		name, kind string
		subject    string
		data       []byte
		refusal    string // empty is retried
		session    string
	}{
		{"an input that can be read now", LetterInput, "tf.input.helper.ann.s7", input, "", "s7"},
		{"an input that cannot be read", LetterInput, "tf.input.helper.ann.s7", []byte("{"), "it would be refused again", ""},
		{"an input of nowhere", LetterInput, "tf.log.helper.s7", input, "no input subject", ""},
		{"a call that may be repeated", LetterCall, "", encode(t, envelope("again", protocol.EffectIdempotent)), "", "retry-again"},
		{"a call that has run", LetterCall, "", encode(t, envelope("ran", protocol.EffectAtMostOnce)), "may have had its effect", ""},
		{"a call nobody claimed", LetterCall, "", encode(t, envelope("unclaimed", protocol.EffectAtMostOnce)), "may have had its effect", ""},
		{"a call that never ran", LetterCall, "", encode(t, envelope("unrun", protocol.EffectAtMostOnce)), "", "retry-unrun"},
		{"a call people agreed to", LetterCall, "", encode(t, gated), "may have had its effect", ""},
		{"no call", LetterCall, "", []byte("junk"), "no call that a worker could run", ""},
		{"a session", LetterSession, "", nil, "quarantined", ""},
		{"an advisory", LetterAdvisory, "", nil, "a coordinator ends it", ""},
		{"a decision", "approval", "", nil, "approvals ls", ""},
		{"a result", "result", "", nil, "no call waits for it", ""},
		{"a timer", "timer", "", nil, "not something that can be said again", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := f.RetryLetter(t.Context(), DeadLetter{Number: 1, Kind: c.kind, ID: "x", DeadLetter: protocol.DeadLetter{Subject: c.subject, Data: c.data}})
			if c.refusal == "" {
				if err != nil || r.Session != c.session {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			wantCode(t, err, protocol.CodeUnsupported)
			if !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("%v, want %q", err, c.refusal)
			}
		})
	}
	if in := f.inputs("helper"); len(in) != 1 || in[0].ID != "in" {
		t.Errorf("%+v", in)
	}
	for _, in := range f.inputs(protocol.CallsApp) {
		if in.Call == nil || string(in.Call.Args) != `{"a":1}` {
			t.Errorf("%+v", in)
		}
	}
}
