package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// desk is a server on which a test plays the coordinator of calls that wait.
type desk struct {
	t      *testing.T
	server *natstest.Server
	conn   *natswire.Conn
	n      natswire.Names

	mu        sync.Mutex
	decisions []protocol.Decision
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := natstest.Start(t)
	conn := s.Connect(t, "")
	d := &desk{t: t, server: s, conn: conn, n: conn.Names()}
	for _, app := range []string{"helper", protocol.CallsApp} {
		if err := conn.EnsureConsumer(t.Context(), natswire.Consumer{Stream: d.n.Input(), Durable: app, Filter: d.n.InputFilter(app), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *desk) publish(subject string, v any) {
	d.t.Helper()
	data, err := protocol.Encode(v)
	if err == nil {
		_, err = d.conn.Publish(context.WithoutCancel(d.t.Context()), natswire.Msg{Subject: subject, Data: data})
	}
	if err != nil {
		d.t.Error(err)
	}
}

func (d *desk) append(session string, ev protocol.Event) {
	d.t.Helper()
	ev.V, ev.ID = protocol.Version, protocol.NewID()
	d.publish(d.n.LogSubject("helper", session), ev)
}

// gated is a call of transfer that waits for a decision.
func gated(session, call, confirmation, args string) protocol.Parked {
	c := protocol.Call{ID: call, Tool: "transfer", Args: json.RawMessage(args), Digest: "d1"}
	expires := int64(4_000_000_000_000)
	return protocol.Parked{
		V: protocol.Version, App: "helper", Session: session, User: "ann", Agent: "helper", Call: call, Tool: c.Tool, Digest: c.Digest,
		Effect: protocol.EffectAtMostOnce, Args: c.Args, Since: 1_000_000_000_000, Until: expires, Seq: 1,
		Reply: "tf.approval.helper." + session + "." + confirmation + ".*",
		Confirmation: &protocol.Confirmation{ID: confirmation, Hint: "May it?", Origin: protocol.OriginFlag, Expires: expires,
			Digest: protocol.ConfirmationDigest(session, &c, c.Args, expires, confirmation)},
	}
}

func awaited(session, call string) protocol.Parked {
	return protocol.Parked{V: protocol.Version, App: "helper", Session: session, User: "bob", Agent: "helper", Call: call, Round: 1, Tool: "report",
		Effect: protocol.EffectRead, Args: json.RawMessage(`{}`), Since: 1_000_000_000_000, Until: 4_000_000_000_000, Seq: 1, Reply: "tf.wake.helper.report." + session + "." + call + ".1"}
}

func (d *desk) park(p protocol.Parked) {
	d.t.Helper()
	d.publish(d.n.ParkSubject(p.App, p.Session, p.Call), p)
}

// decides answers the decisions on a confirmation by code and goes on with then, which may be nil.
func (d *desk) decides(code protocol.Code, then func(protocol.Decision)) {
	d.t.Helper()
	if err := d.conn.EnsureConsumer(d.t.Context(), natswire.Consumer{Stream: d.n.Approval(), Durable: "helper", Filter: d.n.ApprovalFilter("helper"), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1}); err != nil {
		d.t.Fatal(err)
	}
	var working sync.WaitGroup
	puller, err := d.conn.Pull(d.t.Context(), d.n.Approval(), "helper", natswire.PullEvents{Lost: func(error) {}, Deliver: func(m natswire.Delivery) {
		working.Go(func() {
			app, session, confirmation, approver, _ := d.n.ParseApproval(m.Subject)
			decision, err := protocol.DecodeDecision(m.Data, confirmation)
			if err != nil {
				d.t.Error(err)
			}
			d.mu.Lock()
			d.decisions = append(d.decisions, decision)
			d.mu.Unlock()
			if then != nil {
				then(decision)
			}
			data, _ := protocol.Encode(protocol.Receipt{V: protocol.Version, Confirmation: confirmation, Approver: approver, Seq: m.Seq, Code: code, Message: "so be it"})
			_ = d.conn.Emit(context.Background(), natswire.Msg{Subject: d.n.ReceiptSubject(app, session, confirmation), Data: data})
			m.Ack()
		})
	}})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { puller.Close(); working.Wait() })
	puller.Want(100)
}

func (d *desk) command(stdin string, args ...string) (int, string, string) {
	d.t.Helper()
	return command(d.t, stdin, append(args, "--nats", d.server.URL())...)
}

var unstable = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?|in \d+d|\d+[smh] ago`)

const deceptive = `{"amount":12345678901234567890,"note":"a\u202eb` + "\u202e\u200b" + `","to":"p` + "\u0430" + `ypal <b>","z":"x                              y"}`

func TestWhatWaitsAsItIsListedAndShown(t *testing.T) {
	d := newDesk(t)
	q := gated("s1", "c1", "q1", deceptive)
	q.Confirmation.Hint, q.Confirmation.Need, q.Confirmation.NotRequester = "Pay?\x1b[2J\u202e", 2, true
	q.Confirmation.Payload, q.Approvers = json.RawMessage(`{"days":0}`), []string{"zoe"}
	d.park(q)
	forged := gated("s2", "forged", "q2", `{"amount":5}`)
	forged.Args = json.RawMessage(`{"amount":500}`)
	d.park(forged)
	d.park(awaited("s3", "r1"))
	with := awaited("s4", "r2")
	with.Round = 0
	d.park(with)
	d.publish(d.n.WakeSubject("helper", "report", "s5", "r9", 1), protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeFailed, Value: protocol.ErrorValue("no\x1bpaper"), Worker: "w1"})
	d.publish(d.n.DeadLetterSubject("input", "i1"), protocol.DeadLetter{V: protocol.Version, Code: protocol.CodeBadMessage, Reason: "no JSON", Stream: "INPUT", Subject: "tf.input.helper.local.s1", Seq: 3, App: "helper", Session: "s1", Data: []byte("{\u202e")})
	var b strings.Builder
	for _, args := range [][]string{
		{"approvals"}, {"approvals", "ls", "--tool", "report"}, {"approvals", "ls", "--limit", "1"}, {"approvals", "show", "c1"}, {"approvals", "show", "q1", "--output", "json"},
		{"approvals", "show", "forged"}, {"approvals", "show", "c2"}, {"approvals", "approve", "forged"}, {"approvals", "approve", "r1"},
		{"approvals", "approve", "c1", "--digest", "00000000"}, {"approvals", "approve", "c1", "--digest", "00"},
		{"approvals", "approve", "c1", "--payload", "{"}, {"approvals", "approve", "c1", "--as", "a.b"},
		{"calls"}, {"calls", "ls", "--waits", "people"}, {"calls", "show", "r1"}, {"calls", "show", "r2"}, {"calls", "show", "r9"}, {"calls", "show", "r8", "--output", "json"},
		{"calls", "complete", "r1"}, {"calls", "complete", "r2", "--result", "1"}, {"calls", "complete", "c1", "--result", "1"}, {"calls", "complete", "r1", "--error", "x", "--result", "1"},
		{"calls", "complete", "r1", "--percent", "40"}, {"calls", "complete", "r1", "--interim", "--percent", "40.5"}, {"calls", "complete", "r1", "--result", "[1]"},
		{"dlq"}, {"dlq", "show", "i1"}, {"dlq", "retry", "1"}, {"dlq", "drop", "1"}, {"dlq", "drop", "1"}, {"dlq"},
	} {
		code, stdout, stderr := d.command("", args...)
		fmt.Fprintf(&b, "$ toolfabric %s\nexit %d\n%s%s\n", strings.Join(args, " "), code, stdout, stderr)
	}
	text := strings.ReplaceAll(unstable.ReplaceAllString(b.String(), "TIME"), d.server.URL(), "URL")
	golden(t, "waiting.txt", regexp.MustCompile(` {3,}`).ReplaceAllString(text, "  ")) // columns are as wide as times are long
}

func TestADecisionEndsByItsReceipt(t *testing.T) {
	for code, want := range map[protocol.Code]int{"": exitOK, protocol.CodeDecided: exitRefused, protocol.CodeForbidden: exitRefused} {
		d := newDesk(t)
		d.park(gated("s1", "c1", "q1", `{"amount":5}`))
		d.decides(code, nil)
		digest := gated("s1", "c1", "q1", `{"amount":5}`).Confirmation.Digest
		exit, stdout, stderr := d.command("", "approvals", "approve", "c1", "--digest", digest[:16], "--as", "zoe", "--payload", `{"days":3}`)
		if exit != want || !strings.Contains(stdout+stderr, "so be it") {
			t.Errorf("%q: exit %d, %s%s", code, exit, stdout, stderr)
		}
		exit, stdout, _ = d.command("", "approvals", "deny", "q1", "--remark", "no", "--output", "json")
		if exit != want || !strings.Contains(stdout, `"approver": "local"`) {
			t.Errorf("%q: exit %d, %s", code, exit, stdout)
		}
		if len(d.decisions) != 2 || !d.decisions[0].Confirmed || d.decisions[0].Digest != digest || d.decisions[1].Confirmed || d.decisions[1].Hint != "no" {
			t.Errorf("%+v", d.decisions)
		}
	}
}

// starts plays the coordinator that takes the next message up and asks about a call; then goes on when it is decided.
func (d *desk) starts(args string) {
	d.t.Helper()
	n := d.n
	heard, stop := make(chan string, 16), func() {}
	var err error
	stop, err = d.conn.Subscribe(n.InputSubject("helper", "*", "*"), func(m natswire.Msg) {
		if in, err := protocol.DecodeInput(m.Data); err == nil {
			heard <- in.ID
		}
	})
	if err != nil {
		d.t.Fatal(err)
	}
	var working sync.WaitGroup
	working.Go(func() {
		id, ok := <-heard
		if !ok {
			return
		}
		p := gated(id, "c1", "q1", args)
		d.park(p) // first: who follows the log may answer at once
		d.append(id, protocol.Event{Inputs: []protocol.FoldedInput{{ID: id, Kind: protocol.InputMessage, Client: "local"}},
			Turn: &protocol.Turn{Agent: "helper", Content: json.RawMessage(`{"role":"model","parts":[]}`), Calls: []protocol.Call{{ID: "c1", Tool: p.Tool, Args: p.Args, Digest: p.Digest, Verdict: protocol.VerdictAsk, Confirmation: p.Confirmation}}},
			Stop: &protocol.Stop{Kind: protocol.StopParked}})
	})
	d.t.Cleanup(func() { stop(); close(heard); working.Wait() })
}

func TestARunThatWaitsHasNotFailed(t *testing.T) {
	d := newDesk(t)
	d.starts(`{"amount":5}`)
	code, stdout, stderr := d.command("", "run", "--agent", "helper", "--id", "in1", "pay")
	if code != exitOK || stdout != "" {
		t.Errorf("exit %d, %q", code, stdout)
	}
	for _, want := range []string{"? transfer waits for a decision", "toolfabric approvals approve c1 --digest ", ` pub tf.approval.helper.in1.q1.local '{"confirmed":true}'`, "toolfabric sessions show in1"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in %s", want, stderr)
		}
	}
	code, stdout, _ = d.command("", "run", "--session", "in1", "--id", "in1", "pay", "--output", "json")
	if code != exitOK || !strings.Contains(stdout, `"waiting":{`) {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if code, stdout, stderr = d.command("", "sessions", "show", "in1"); code != exitOK || !strings.Contains(stdout, ", parked") || !strings.Contains(stderr, "approvals approve c1") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

// sit runs a command for a person at a terminal who types.
func (d *desk) sit(typed string, args ...string) (int, string) {
	d.t.Helper()
	d.t.Setenv("XDG_CONFIG_HOME", d.t.TempDir())
	var screen bytes.Buffer
	a := &app{in: strings.NewReader(typed), out: term.Screen{Writer: &screen}, err: term.Screen{Writer: &screen}, ask: true}
	root := a.root()
	root.SetArgs(append(args, "--nats", d.server.URL()))
	err := root.ExecuteContext(d.t.Context())
	if err != nil {
		a.report(a.root(), err)
	}
	return exitCode(err), screen.String()
}

func TestThePersonAtTheTerminalIsAsked(t *testing.T) {
	says := func(text string) *protocol.Turn {
		content, _ := json.Marshal(map[string]any{"role": "model", "parts": []map[string]string{{"text": text}}})
		return &protocol.Turn{Agent: "helper", Content: content}
	}
	for _, c := range []struct {
		name, typed string
		want        []string // in this order
		decisions   []bool
		edited      string
	}{
		{"yes", "what?\ny\n", []string{"? transfer waits", `"amount": 5`, "May it?", "run it?", "run it?", "paid"}, []bool{true}, ""},
		{"no", "n\n", []string{"run it?", "not paid"}, []bool{false}, ""},
		{"edit", "e\n[]\ne\n{\"amount\":1}\ny\n", []string{"run it?", "a JSON object", `"amount": 1`, "run it?", "paid"}, []bool{true, true}, `{"amount":1}`},
		{"later", "l\n", []string{"run it?", "toolfabric approvals approve c1", "sessions show in1"}, nil, ""},
		{"the end of input", "", []string{"run it?", "toolfabric approvals approve c1"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.starts(`{"amount":5}`)
			d.decides("", func(dec protocol.Decision) {
				switch {
				case len(dec.Args) > 0:
					d.park(gated("in1", "c1", "q2", string(dec.Args)))
				case dec.Confirmed:
					d.append("in1", protocol.Event{Answers: []protocol.Answer{{Call: "c1", Result: protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{}`)}}}, Turn: says("paid"), Stop: &protocol.Stop{Kind: protocol.StopDone}})
				default:
					d.append("in1", protocol.Event{Answers: []protocol.Answer{{Call: "c1", Result: protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeDenied, Value: json.RawMessage(`{}`)}}}, Turn: says("not paid"), Stop: &protocol.Stop{Kind: protocol.StopDone}})
				}
			})
			code, screen := d.sit(c.typed, "run", "--agent", "helper", "--id", "in1", "pay")
			if code != exitOK {
				t.Errorf("exit %d", code)
			}
			rest := screen
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q is not there, or not in its place:\n%s", want, screen)
				}
				rest = after
			}
			if n := strings.Count(screen, "May it?"); n != 1 && n != len(c.decisions) {
				t.Errorf("it is asked %d times:\n%s", n, screen)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			var got []bool
			for _, dec := range d.decisions {
				got = append(got, dec.Confirmed)
			}
			if !slices.Equal(got, c.decisions) || c.edited != "" && string(d.decisions[0].Args) != c.edited {
				t.Errorf("%+v", d.decisions)
			}
		})
	}
}

// What is printed to be pasted reaches the fabric that was spoken to.
func TestPrintedCommandsReachTheSameFabric(t *testing.T) {
	d := newDesk(t)
	d.park(gated("s1", "c1", "q1", `{"amount":5}`))
	data := filepath.Join(t.TempDir(), "it's here")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	remove, err := boot.WriteEndpoint(data, boot.Endpoint{URL: d.server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command(t, "", "approvals", "show", "c1", "--data", data)
	if code != exitOK {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	quoted := "'" + strings.ReplaceAll(data, "'", `'\''`) + "'"
	for _, want := range []string{"toolfabric approvals deny c1 --data " + quoted + "\n", "nats --server " + d.server.URL() + " pub tf.approval."} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in %s", want, stdout)
		}
	}
	remove()
	code, _, stderr = command(t, "", "approvals", "show", "c1", "--data", data)
	if code != exitUnreachable || !strings.Contains(stderr, "nobody serves "+data) || !strings.Contains(stderr, "toolfabric up --data") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
