package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/cmd/internal/host"
	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabric is a server with a coordinator, and a host that a test starts.
type fabric struct {
	t       *testing.T
	server  *natstest.Server
	client  *client.Client
	log     *records
	serving chan string // names of tools that became served
	ended   chan error  // of the host
	stop    context.CancelFunc
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	s := natstest.Start(t)
	conn := s.Connect(t, "")
	c, err := client.New(client.Config{Bus: conn, Names: conn.Names(), Client: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{}, 1)
	coord, err := coordinator.New(coordinator.Config{Bus: conn, Names: conn.Names(), Ready: func() { ready <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = coord.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	<-ready
	return &fabric{t: t, server: s, client: c, log: &records{}, serving: make(chan string, 100), ended: make(chan error, 1)}
}

// host starts a host, which is told to stop when the test ends.
func (f *fabric) host(tools []tool.Tool, sets ...tool.Toolset) {
	conn := f.server.Dial(f.t, natswire.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	cfg := worker.Config{Bus: conn, Names: conn.Names(), ID: "host", Tools: tools, Logger: slog.New(slog.NewTextHandler(f.log, nil)), Listener: worker.Events{Serving: func(name string) { f.serving <- name }}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.ended <- host.Run(ctx, cfg, sets)
	}()
	f.t.Cleanup(func() { cancel(); <-done })
}

// until waits for the tools to be served, each by the newest worker.
func (f *fabric) until(names ...string) {
	f.t.Helper()
	for missing := len(names); missing > 0; {
		got := <-f.serving
		for i, name := range names {
			if name == got {
				names[i], missing = "", missing-1
				break
			}
		}
	}
}

func (f *fabric) call(name, want string) {
	f.t.Helper()
	r, err := f.client.Call(f.t.Context(), name, json.RawMessage(`{}`))
	if err != nil || string(r.Value) != want {
		f.t.Errorf("%s: got %s %s, %v, want %s", name, r.Outcome, r.Value, err, want)
	}
}

// says is a tool that answers with one text.
func says(t *testing.T, name, description, text string) tool.Tool {
	return runs(t, name, description, func() string { return text })
}

func runs(t *testing.T, name, description string, run func() string) tool.Tool {
	t.Helper()
	one, err := functiontool.New(functiontool.Config{Name: name, Description: description, Effect: tool.Idempotent}, func(tool.Context, struct{}) (string, error) { return run(), nil })
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// set is a toolset that a test changes.
type set struct {
	name string
	news chan struct{}

	mu     sync.Mutex
	tools  []tool.Tool
	err    error
	closed bool
}

func newSet(name string, tools ...tool.Tool) *set {
	return &set{name: name, news: make(chan struct{}, 1), tools: tools}
}

func (s *set) Name() string             { return s.name }
func (s *set) Changed() <-chan struct{} { return s.news }

func (s *set) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	if ctx.AppName() != "" || ctx.Err() != nil {
		return nil, errors.New("listed for somebody")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, s.err
}

func (s *set) become(err error, tools ...tool.Tool) {
	s.mu.Lock()
	s.tools, s.err = tools, err
	s.mu.Unlock()
	s.news <- struct{}{}
}

func (s *set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// broken is a set whose code panics.
type broken struct{ *set }

func (broken) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { panic("a bug of the set") }

func (s *set) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func TestAChangedSetIsServedByAnotherWorker(t *testing.T) {
	f := newFabric(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	s := newSet("s", says(t, "a", "First.", "one"), runs(t, "slow", "Slow.", func() string { close(began); <-goOn; return "done" }))
	f.host([]tool.Tool{says(t, "own", "Own.", "own")}, s)
	f.until("own", "a", "slow")
	f.call("a", `{"result":"one"}`)
	slow := make(chan protocol.Result, 1)
	go func() {
		r, _ := f.client.Call(context.WithoutCancel(t.Context()), "slow", json.RawMessage(`{}`))
		slow <- r
	}()
	<-began
	s.become(nil, says(t, "a", "Second.", "two"), says(t, "b", "New.", "new"))
	f.until("own", "a", "b")
	f.call("b", `{"result":"new"}`)
	f.call("own", `{"result":"own"}`)
	close(goOn) // the worker of before drains: what it runs ends well
	if r := <-slow; string(r.Value) != `{"result":"done"}` {
		t.Errorf("the call that ran got %s %s", r.Outcome, r.Value)
	}
	for { // both may take it until the old one has drained
		r, err := f.client.Call(t.Context(), "a", json.RawMessage(`{}`))
		if err != nil || r.Outcome != protocol.OutcomeCompleted {
			t.Fatalf("got %s %s, %v", r.Outcome, r.Value, err)
		}
		if string(r.Value) == `{"result":"two"}` {
			break
		}
	}
}

func TestNewsThatChangeNothingChangeNoWorker(t *testing.T) {
	f := newFabric(t)
	s := newSet("s", says(t, "a", "First.", "one"))
	f.host(nil, s)
	f.until("a")
	s.become(nil, says(t, "a", "First.", "one"))
	s.become(nil, says(t, "a", "First.", "one"), says(t, "b", "Then.", "b"))
	f.until("a", "b")
	if n := strings.Count(f.log.String(), "another worker takes over"); n != 1 {
		t.Errorf("%d workers took over, want 1", n)
	}
}

func TestASetThatFailsTakesNothingDown(t *testing.T) {
	f := newFabric(t)
	bad, good := newSet("bad"), newSet("good", says(t, "g", "Good.", "good"))
	bad.err = errors.New("the server is down")
	f.host(nil, bad, broken{newSet("broken")}, good)
	f.until("g")
	f.call("g", `{"result":"good"}`)
	if log := f.log.String(); !strings.Contains(log, "toolset=bad") || !strings.Contains(log, "the server is down") || !strings.Contains(log, "toolset=broken") {
		t.Errorf("the log says %s", log)
	}
	bad.become(nil, says(t, "b", "Back.", "back"))
	f.until("g", "b")
	f.call("b", `{"result":"back"}`)
	good.become(errors.New("gone"), nil...)
	bad.become(nil, says(t, "b", "Back again.", "again"))
	f.until("g", "b")
	f.call("g", `{"result":"good"}`) // what it offered before is served on
}

// wild is a set all of whose code panics, once its tools are listed.
type wild struct{ tools []tool.Tool }

func (wild) Name() string                                       { panic("a bug in Name") }
func (w wild) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return w.tools, nil }
func (wild) Changed() <-chan struct{}                           { panic("a bug in Changed") }
func (wild) Close() error                                       { panic("a bug in Close") }

// undeclared is a tool whose declaration panics.
type undeclared struct{ tool.Runnable }

func (undeclared) Declaration() *genai.FunctionDeclaration { panic("a bug in Declaration") }

func TestCodeThatPanicsTakesNothingDown(t *testing.T) {
	f := newFabric(t)
	f.host(nil, wild{[]tool.Tool{undeclared{says(t, "u", "Never.", "never").(tool.Runnable)}, says(t, "w", "Wild.", "wild")}}, newSet("good", says(t, "g", "Good.", "good")))
	f.until("g", "w")
	f.call("g", `{"result":"good"}`)
	f.call("w", `{"result":"wild"}`)
	f.stop()
	if err := <-f.ended; err != nil {
		t.Error(err)
	}
	log := f.log.String()
	for _, want := range []string{"a bug in Changed", "a bug in Close", "a bug in Declaration"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not tell of %s:\n%s", want, log)
		}
	}
}

func TestAToolOfAnIllegalNameIsServedUnderItsAlias(t *testing.T) {
	f := newFabric(t)
	const name = "get/page"
	f.host([]tool.Tool{outside{says(t, "a", "Ours.", "ours"), "get page"}}, newSet("web", outside{says(t, "g", "Gets.", "got"), name}))
	f.until(tool.Alias(name), tool.Alias("get page"))
	f.call(tool.Alias(name), `{"result":"got"}`)
	f.call(tool.Alias("get page"), `{"result":"ours"}`)
}

// outside is a tool with a name from outside.
type outside struct {
	tool.Tool
	name string
}

func (o outside) Name() string      { return o.name }
func (o outside) Unwrap() tool.Tool { return o.Tool }

func TestANameClashNamesBothOwners(t *testing.T) {
	f := newFabric(t)
	f.host(nil, newSet("left", says(t, "same", "Left.", "left"), says(t, "l", "L.", "l")), newSet("right", says(t, "same", "Right.", "right"), says(t, "r", "R.", "r")))
	f.until("same", "l", "r")
	f.call("same", `{"result":"left"}`)
	if log := f.log.String(); !strings.Contains(log, "left") || !strings.Contains(log, "right") || !strings.Contains(log, "two tools are named same") {
		t.Errorf("the log says %s", log)
	}
}

func TestSetsAreClosedAfterTheLastCall(t *testing.T) {
	f := newFabric(t)
	var s *set
	began, goOn := make(chan struct{}), make(chan struct{})
	s = newSet("s", runs(t, "a", "Waits.", func() string {
		close(began)
		<-goOn
		if s.isClosed() {
			return "closed in the middle"
		}
		return "ok"
	}))
	f.host(nil, s)
	f.until("a")
	answer := make(chan protocol.Result, 1)
	go func() {
		r, _ := f.client.Call(context.WithoutCancel(t.Context()), "a", json.RawMessage(`{}`))
		answer <- r
	}()
	<-began
	f.stop()
	close(goOn)
	if r := <-answer; string(r.Value) != `{"result":"ok"}` {
		t.Errorf("got %s %s", r.Outcome, r.Value)
	}
	if err := <-f.ended; err != nil || !s.isClosed() {
		t.Errorf("it ended with %v, the set is closed: %v", err, s.isClosed())
	}
}

func TestToolsThatCannotBeServedEndItAtOnce(t *testing.T) {
	f := newFabric(t)
	s := newSet("s")
	f.host([]tool.Tool{says(t, "a", "A.", "a"), says(t, "a", "A.", "a")}, s)
	if err := <-f.ended; protocol.CodeOf(err) != protocol.CodeUsage || !s.isClosed() {
		t.Errorf("got %v, the set is closed: %v", err, s.isClosed())
	}
}

// records is a log.
type records struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}
