package badinput

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// patience is how long a row waits for what must happen, poll the pause between two looks at what nobody tells of.
const (
	patience = 2 * time.Minute
	poll     = 10 * time.Millisecond
)

// fabric is a server with a coordinator that serves the app house, a worker that serves add, a client, and somebody with
// bad intentions.
type fabric struct {
	t       testing.TB
	server  *natstest.Server
	names   natswire.Names
	conn    *natswire.Conn // of the operator: for looking at streams
	client  *client.Client
	mallory *nats.Conn // publishes anything
	add     *stub
	said    *logbook // of the coordinator
}

// names of the users that connect, "" for nobody in particular.
type logins struct{ operator, coordinator, worker, client, mallory string }

// in is the same fabric for a subtest.
func (f *fabric) in(t testing.TB) *fabric {
	g := *f
	g.t = t
	return &g
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	return newFabricOn(t, natstest.Start(t), logins{}, nil)
}

func newFabricOn(t *testing.T, s *natstest.Server, who logins, more []tool.Tool) *fabric {
	t.Helper()
	f := &fabric{t: t, server: s, said: &logbook{}, add: answering("add", `{"sum":42}`)}
	operator := s.Dial(t, natswire.Config{URL: as(s, who.operator)})
	if err := natswire.Provision(t.Context(), operator, natswire.ProvisionConfig{}); err != nil {
		t.Fatal(err)
	}
	f.names = operator.Names()
	f.conn = operator
	c, err := client.New(client.Config{Bus: s.Dial(t, natswire.Config{URL: as(s, who.client)}), Names: f.names, Client: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	f.client = c
	if f.mallory, err = nats.Connect(as(s, who.mallory), nats.CustomInboxPrefix(inbox(who.mallory))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.mallory.Close)
	f.coordinate(s.Dial(t, natswire.Config{URL: as(s, who.coordinator)}))
	f.work(s.Dial(t, natswire.Config{URL: as(s, who.worker)}), append(more, f.add)...)
	return f
}

// as is the server's address for a user of natstest's Auth; all passwords are "pw".
func as(s *natstest.Server, user string) string {
	if user == "" {
		return s.URL()
	}
	return strings.Replace(s.URL(), "://", "://"+user+":pw@", 1)
}

func inbox(user string) string {
	if user == "" {
		return "_INBOX"
	}
	return "_INBOX_" + user
}

const house = `
rules:
  - user: 'add'
    calls: [{tool: add, args: {}}]
  - user: 'slow'
    calls: [{tool: slow, args: {}}]
  - user: 'add'
    after: [add]
    text: 'the sum is {{ (index .results.add 0).value }}'
  - user: 'slow'
    after: [slow]
    text: 'slow said {{ (index .results.slow 0).value }}'
`

func (f *fabric) coordinate(conn *natswire.Conn) {
	f.t.Helper()
	s, err := scripted.Parse([]byte(house))
	if err != nil {
		f.t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "house", Model: scripted.New("scripted", s), Instruction: "Use the tools.",
		Tools: []tool.Tool{tool.Pool("add"), tool.Pool("slow")}})
	if err != nil {
		f.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(f.said, &slog.HandlerOptions{ReplaceAttr: untimed}))
	c, err := coordinator.New(coordinator.Config{Bus: conn, Names: f.names, Agents: []agent.Agent{a}, CallLease: time.Second, CallDeliveries: 3, Grace: 5 * time.Second, Logger: log})
	if err != nil {
		f.t.Fatal(err)
	}
	f.run(c.Run)
}

func untimed(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func (f *fabric) work(conn *natswire.Conn, tools ...tool.Tool) {
	f.t.Helper()
	serving := make(chan string, 100)
	w, err := worker.New(worker.Config{Bus: conn, Names: f.names, Tools: tools, ID: "w-" + tools[0].Name(), Slots: 64, Grace: 100 * time.Millisecond,
		Listener: worker.Events{Serving: func(name string) { serving <- name }}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.run(w.Run)
	for range tools {
		receive(f.t, "pool being served", serving)
	}
}

func (f *fabric) run(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			f.t.Errorf("a member ended: %v", err)
		}
	})
	f.t.Cleanup(func() { cancel(); done.Wait() })
}

// publish stores what mallory sends and returns what the broker says about it.
func (f *fabric) publish(subject string, data []byte, headers ...string) (*nats.PubAck, error) {
	f.t.Helper()
	js, err := f.mallory.JetStream(nats.MaxWait(5 * time.Second))
	if err != nil {
		f.t.Fatal(err)
	}
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		m.Header[headers[i]] = []string{headers[i+1]}
	}
	return js.PublishMsg(m)
}

// store is publish for what the broker takes.
func (f *fabric) store(subject string, data []byte, headers ...string) {
	f.t.Helper()
	if _, err := f.publish(subject, data, headers...); err != nil {
		f.t.Fatalf("publish on %s: %v", subject, err)
	}
}

// letter waits for the dead-letter record of a message that was published on subject, and returns what it says.
func (f *fabric) letter(kind, subject string, data []byte) string {
	f.t.Helper()
	var found protocol.DeadLetter
	kept := data[:min(len(data), protocol.MaxLetterData)]
	f.eventually("dead letter of "+subject, func() bool {
		stored, err := f.conn.Latest(f.t.Context(), f.names.DeadLetters(), f.names.DeadLetterSubject(kind, "*"))
		if err != nil {
			f.t.Fatal(err)
		}
		for _, s := range stored {
			if err := json.Unmarshal(s.Data, &found); err != nil {
				f.t.Fatal(err)
			}
			if found.Subject == subject && bytes.Equal(found.Data, kept) {
				return true
			}
			found = protocol.DeadLetter{}
		}
		return false
	})
	return "dead letter " + kind + " of " + found.Stream + ": " + string(found.Code) + ": " + found.Reason
}

// outcome is how the run of an input ended.
func (f *fabric) outcome(app, session, input string) client.Outcome {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	out, err := f.client.Wait(ctx, app, session, input)
	if err != nil {
		f.t.Fatalf("wait for %s: %v", session, err)
	}
	return out
}

func told(out client.Outcome) string {
	switch {
	case out.Problem != nil && out.Refused:
		return "refused in the log: " + string(out.Problem.Code) + ": " + out.Problem.Message
	case out.Problem != nil:
		return "run failed: " + string(out.Problem.Code) + ": " + out.Problem.Message
	case out.Result != nil:
		return "result: " + string(out.Result.Outcome) + " " + string(out.Result.Code) + " " + string(out.Result.Value)
	default:
		return "answer: " + out.Text
	}
}

// nothingLost checks that another session of the app and another call of the tool go on.
func (f *fabric) nothingLost() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	r, err := f.client.Send(ctx, "house", "", client.Text("add"))
	if err != nil {
		f.t.Fatalf("another session: %v", err)
	}
	if out := f.outcome(r.App, r.Session, r.InputID); out.Problem != nil || !strings.HasPrefix(out.Text, "the sum is") {
		f.t.Errorf("another session ended with %+v", out)
	}
	if res, err := f.client.Call(ctx, "add", json.RawMessage(`{}`)); err != nil || string(res.Value) != `{"sum":42}` {
		f.t.Errorf("another call ended with %s, %v", res.Value, err)
	}
}

// eventually looks again until it is so.
func (f *fabric) eventually(what string, is func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for !is() {
		if natswire.Sleep(ctx, natswire.SystemClock{}, poll) != nil {
			f.t.Fatalf("no %s in %s", what, patience)
		}
	}
}

func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case v := <-from:
		return v
	case <-late.C:
		t.Fatalf("no %s in %s", what, patience)
		panic("unreachable")
	}
}

// logbook keeps the lines of a log.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimSpace(string(p)))
	return len(p), nil
}

// with is the first line that holds all of the words; empty for none.
func (l *logbook) with(words ...string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for _, line := range l.lines {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		return line
	}
	return ""
}
