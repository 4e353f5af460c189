package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
)

const (
	week     = int64(7 * 24 * 3600 * 1000)
	flagText = "Please approve or reject the tool call refund() by responding with a FunctionResponse with an expected ToolConfirmation payload."
)

func rules(t *testing.T, rules ...policy.Rule) *policy.Policy {
	t.Helper()
	p, err := policy.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhoAsksBeforeACallRuns(t *testing.T) {
	large := policy.Rule{Name: "large", When: "args.amount > 100", Hint: "That is a lot.", Need: 2, NotRequester: true}
	tight := policy.Rule{Name: "two_for_money", When: `tool == "refund"`, Need: 2, Tighten: true}
	for _, c := range []struct {
		name string
		flag bool
		rule policy.Rule
		args string
		want *protocol.Confirmation
	}{
		{"nobody", false, large, `{"amount":100}`, nil},
		{"the declaration", true, large, `{"amount":100}`, &protocol.Confirmation{Origin: "flag", Hint: flagText}},
		{"a rule", false, large, `{"amount":100.5}`, &protocol.Confirmation{Origin: "large", Hint: "That is a lot.", Need: 2, NotRequester: true}},
		{"both", true, large, `{"amount":101}`, &protocol.Confirmation{Origin: "flag", Hint: flagText + "\nThat is a lot.", Need: 2, NotRequester: true}},
		{"a rule that only tightens, alone", false, tight, `{"amount":1}`, nil},
		{"a rule that only tightens, and the declaration", true, tight, `{"amount":1}`, &protocol.Confirmation{Origin: "flag", Hint: flagText, Need: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := offer("refund", func(d *protocol.Declaration) { d.Confirm = c.flag })
			at := desk()
			at.Policy = rules(t, c.rule)
			var args map[string]any
			if err := json.Unmarshal([]byte(c.args), &args); err != nil {
				t.Fatal(err)
			}
			byModel, err := Decide(newAgent(t, nil), []Offer{o}, at, callID, finalResponse(calling("refund", args)))
			if err != nil {
				t.Fatal(err)
			}
			at = desk()
			at.Policy = rules(t, c.rule)
			byClient := ClientCall([]Offer{o}, at, "call0", protocol.ClientCall{Tool: "refund", Args: json.RawMessage(c.args)})
			want := protocol.Call{
				ID: "call0", Tool: "refund", Args: json.RawMessage(c.args), Digest: o.Pinned, Effect: protocol.EffectRead, Verdict: protocol.VerdictRun,
				AnswersTo: protocol.MailboxResults, Queue: 30_000, Timeout: 30_000, Budget: 140_000, Park: week, Confirmation: c.want,
			}
			if c.want != nil {
				want.Verdict, want.AnswersTo = protocol.VerdictAsk, protocol.MailboxWake
				c.want.ID, c.want.Expires = "q1", 1000+week
				c.want.Digest = protocol.ConfirmationDigest("s1", &want, want.Args, c.want.Expires, "q1")
			}
			for who, turn := range map[string]protocol.Turn{"model": byModel.Turn, "client": byClient} {
				if diff := cmp.Diff([]protocol.Call{want}, turn.Calls); diff != "" {
					t.Errorf("%s (-want +got):\n%s", who, diff)
				}
			}
		})
	}
}

func TestCallsThatAnswerLater(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*protocol.Declaration)
		mailbox protocol.Mailbox
		park    int64
		budget  int64
	}{
		{"quick", nil, protocol.MailboxResults, week, 140_000},
		{"of one minute", func(d *protocol.Declaration) { d.Timeout, d.QueueTimeout = 60_000, 60_000 }, protocol.MailboxResults, week, 260_000},
		{"slow", func(d *protocol.Declaration) { d.Timeout, d.Attempts = 7_200_000, 1 }, protocol.MailboxWake, week, 7_230_000}, // longer than a run
		{"slow to begin", func(d *protocol.Declaration) { d.QueueTimeout, d.Attempts = 60_001, 1 }, protocol.MailboxWake, week, 90_001},
		{"without end", func(d *protocol.Declaration) { d.Timeout, d.QueueTimeout = 1<<60, 1<<60 }, protocol.MailboxWake, week, week},
		{"long-running", func(d *protocol.Declaration) { d.LongRunning, d.ParkTimeout = true, 5000 }, protocol.MailboxWake, 5000, 140_000},
		{"gated", func(d *protocol.Declaration) { d.Confirm, d.ParkTimeout = true, 5000 }, protocol.MailboxWake, 5000, 140_000},
	} {
		o := offer("a", c.change)
		got := ClientCall([]Offer{o}, desk(), "c1", protocol.ClientCall{Tool: "a", Args: json.RawMessage(`{}`)}).Calls[0]
		if got.AnswersTo != c.mailbox || got.Park != c.park || got.Budget != c.budget || got.LongRunning != o.LongRunning {
			t.Errorf("%s: answers to %s, park %d, budget %d, long-running %v", c.name, got.AnswersTo, got.Park, got.Budget, got.LongRunning)
		}
		if q := got.Confirmation; q != nil && q.Expires != 1000+c.park {
			t.Errorf("%s: expires at %d", c.name, q.Expires)
		}
	}
}

func TestWhatAToolAsksByItself(t *testing.T) {
	call := protocol.Call{ID: "c1", Tool: "refund", Digest: "d", Args: json.RawMessage(`{"n":1}`), Park: week}
	enforce := policy.Rule{Name: "no_means_no", When: `agent == "helper" && user == "ann" && app == "helper"`, EnforceDenial: true, Need: 3, Tighten: true}
	payload := json.RawMessage(`{"amount":3}`)
	for _, c := range []struct {
		name string
		ask  protocol.Ask
		rule []policy.Rule
		want protocol.Confirmation
	}{
		{"a tool", protocol.Ask{Hint: "need it", Payload: payload}, nil, protocol.Confirmation{Origin: "tool", Hint: "need it", Payload: payload, ToolDecides: true}},
		{"its provider", protocol.Ask{Provider: true}, nil, protocol.Confirmation{Origin: "provider", Hint: flagText}},
		{"under a rule", protocol.Ask{Hint: "need it"}, []policy.Rule{enforce}, protocol.Confirmation{Origin: "tool", Hint: "need it", Need: 3}},
	} {
		at := desk()
		at.Policy = rules(t, c.rule...)
		got := at.ToolAsks(&call, "helper", call.Args, &c.ask)
		c.want.ID, c.want.Expires = "q1", 1000+week
		c.want.Digest = protocol.ConfirmationDigest("s1", &call, call.Args, c.want.Expires, "q1")
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestEditedArgumentsNeedAConfirmationOfTheirOwn(t *testing.T) {
	o := offer("refund", func(d *protocol.Declaration) { d.Confirm = true })
	call := protocol.Call{ID: "c1", Tool: "refund", Digest: o.Pinned, Args: json.RawMessage(`{"amount":1}`), Park: week}
	was := &protocol.Confirmation{ID: "q0", Origin: "flag", Hint: "h", Payload: json.RawMessage(`1`), Need: 2, ToolDecides: true, Digest: "old"}
	at := desk()
	at.Policy = rules(t, policy.Rule{Name: "large", When: "args.amount > 100", NotRequester: true})
	got, args, err := at.Edited([]Offer{o}, &call, "helper", json.RawMessage(`{ "amount": 101 }`), was)
	if err != nil || string(args) != `{"amount":101}` {
		t.Fatalf("%s, %v", args, err)
	}
	want := &protocol.Confirmation{ID: "q1", Origin: "flag", Hint: "h", Payload: was.Payload, Need: 2, NotRequester: true, ToolDecides: true, Expires: 1000 + week}
	want.Digest = protocol.ConfirmationDigest("s1", &call, args, want.Expires, "q1")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	strict := o
	strict.Schema = refuseArgs("amount is no number at /amount")
	if _, _, err := at.Edited([]Offer{strict}, &call, "", json.RawMessage(`{"amount":"x"}`), was); protocol.CodeOf(err) != protocol.CodeSchemaViolation || !strings.Contains(err.Error(), "/amount") {
		t.Errorf("arguments that do not fit: %v", err)
	}
	other := offer("refund", nil)
	if _, _, err := at.Edited([]Offer{other}, &call, "", json.RawMessage(`{}`), was); protocol.CodeOf(err) != protocol.CodeDigestMismatch {
		t.Errorf("another version: %v", err)
	}
}
