package badinput

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// results are bodies that somebody of the tool's own pool stores in the mailbox of a call that is running.
var results = []struct{ name, data string }{
	{"not JSON", `done`},
	{"nothing at all", ``},
	{"a version of tomorrow", `{"v":2,"outcome":"completed","value":{}}`},
	{"a value that is no object", `{"v":1,"outcome":"completed","value":[1]}`},
	{"no value", `{"v":1,"outcome":"completed"}`},
	{"an unknown outcome", `{"v":1,"outcome":"approved","value":{}}`},
	{"a key twice", `{"v":1,"outcome":"failed","outcome":"completed","value":{}}`},
	{"a key in other case", `{"v":1,"outcome":"failed","Outcome":"completed","value":{}}`},
	{"invalid UTF-8", "{\"v\":1,\"outcome\":\"completed\",\"value\":{\"a\":\"\xff\"}}"},
	{"a lone surrogate in a key", `{"v":1,"outcome":"completed","value":{"\udc00":1}}`},
	{"nested too deep", `{"v":1,"outcome":"completed","value":` + strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat(`}`, 71)},
	{"a reference to a body of somebody else", `{"v":1,"outcome":"completed","value":{},"body":{"name":"sha256-0","sha256":"0","size":1,"type":"x"}}`},
	{"state beyond its limit", `{"v":1,"outcome":"completed","value":{},"actions":{"state_delta":{"k":"` + strings.Repeat("x", 300<<10) + `"}}}`},
	{"another worker's name", `{"v":1,"outcome":"completed","value":{"who":"me"},"worker":"somebody-else"}`},
	{"a worker's name that commands a terminal", `{"v":1,"outcome":"completed","value":{},"worker":"\u001b[2J"}`},
	{"a text that commands a terminal", `{"v":1,"outcome":"completed","value":{"t":"\u001b]52;c;AAAA\u0007"}}`},
}

func newSlow(t *testing.T) (*fabric, *held) {
	t.Helper()
	slow := holding("slow", 30*time.Second)
	return newFabricOn(t, natstest.Start(t), logins{}, []tool.Tool{slow}), slow
}

// begin has the model of a session ask for slow and returns the call that runs.
func (f *fabric) begin(slow *held) (client.Receipt, string) {
	f.t.Helper()
	r, err := f.client.Send(f.t.Context(), "house", "", client.Text("slow"))
	if err != nil {
		f.t.Fatal(err)
	}
	return r, receive(f.t, "run of slow", slow.started)
}

// ended is how a call of a session ended, as its log has it.
func (f *fabric) ended(r client.Receipt, call string) string {
	f.t.Helper()
	f.outcome(r.App, r.Session, r.InputID)
	log, err := f.client.Log(f.t.Context(), r.App, r.Session, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range log {
		for _, a := range e.Event.Answers {
			if a.Call == call {
				return fmt.Sprintf("%s %s %s", a.Outcome, a.Code, a.Value)
			}
		}
	}
	f.t.Fatalf("no answer of call %s in the log", call)
	panic("unreachable")
}

func TestBadResultsEndTheirCallAndNothingElse(t *testing.T) {
	t.Parallel()
	f, slow := newSlow(t)
	var b strings.Builder
	for _, row := range results {
		r, call := f.begin(slow)
		f.store(f.names.ResultSubject("slow", r.Session, call, 0), []byte(row.data))
		fmt.Fprintf(&b, "# %s\n%s\n", row.name, f.ended(r, call))
		m, err := f.conn.Last(t.Context(), f.names.Results(), f.names.ResultSubject("slow", r.Session, call, 0))
		if err != nil || string(m.Data) != row.data {
			t.Errorf("%s: the mailbox holds %q, %v", row.name, m.Data, err)
		}
		f.nothingLost()
	}
	golden(t, "result", b.String())
}

// A result that is not this call's changes nothing: the right one, which comes last, ends it.
func TestResultsOfOthersAreNoAnswer(t *testing.T) {
	t.Parallel()
	f, slow := newSlow(t)
	other, err := f.client.Send(t.Context(), "house", "", client.Text("add"))
	if err != nil {
		t.Fatal(err)
	}
	forged := []byte(`{"v":1,"outcome":"completed","value":{"forged":true}}`)
	for name, subject := range map[string]func(session, call string) string{
		"from the pool of another tool":  func(s, c string) string { return f.names.ResultSubject("add", s, c, 0) },
		"of another session":             func(_, c string) string { return f.names.ResultSubject("slow", other.Session, c, 0) },
		"of another call":                func(s, _ string) string { return f.names.ResultSubject("slow", s, protocol.NewID(), 0) },
		"of a later round":               func(s, c string) string { return f.names.ResultSubject("slow", s, c, 1) },
		"of a round in another spelling": func(s, c string) string { return f.names.ResultSubject("slow", s, c, 0) + "0" },
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			r, call := f.begin(slow)
			f.store(subject(r.Session, call), forged)
			f.store(f.names.ResultSubject("slow", r.Session, call, 0), []byte(`{"v":1,"outcome":"completed","value":{"right":true}}`))
			if got := f.ended(r, call); !strings.Contains(got, "right") {
				t.Errorf("the call ended with %s", got)
			}
		})
	}
	f.nothingLost()
}

func TestSecondResultIsRefusedByTheBroker(t *testing.T) {
	t.Parallel()
	f, slow := newSlow(t)
	r, call := f.begin(slow)
	subject := f.names.ResultSubject("slow", r.Session, call, 0)
	f.store(subject, []byte(`{"v":1,"outcome":"completed","value":{"first":true}}`))
	if _, err := f.publish(subject, []byte(`{"v":1,"outcome":"completed","value":{"second":true}}`)); err == nil {
		t.Error("the second result is stored")
	}
	if got := f.ended(r, call); !strings.Contains(got, "first") {
		t.Errorf("the call ended with %s", got)
	}
}

func TestForgedClaimStopsItsCallOnly(t *testing.T) {
	t.Parallel()
	brief := answering("brief", `{}`)
	brief.settings = tool.Settings{Timeout: time.Second, QueueTimeout: time.Second}
	f := newFabricOn(t, natstest.Start(t), logins{}, []tool.Tool{brief})
	var claimed []string
	stop, err := f.conn.Subscribe(f.names.CallSubject("brief"), f.claimFirst(&claimed))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	res, err := f.client.Call(t.Context(), "brief", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	// Either the forger or the worker was first; whoever lost changed nothing, and nothing ran twice.
	if n := brief.runs.Load(); n > 1 || n == 1 && res.Outcome != protocol.OutcomeCompleted || n == 0 && res.Outcome != protocol.OutcomeUnknown {
		t.Errorf("%d runs, ended as %s %s", n, res.Outcome, res.Value)
	}
	f.nothingLost()
}
