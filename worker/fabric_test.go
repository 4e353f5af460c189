package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func names(t testing.TB) natswire.Names {
	t.Helper()
	n, err := natswire.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fn is a tool made of a function.
type fn struct {
	name     string
	settings tool.Settings
	schema   string // of the arguments; empty takes any object
	long     bool
	run      func(ctx tool.Context, args json.RawMessage) (json.RawMessage, error)
}

func (f *fn) Name() string            { return f.name }
func (f *fn) Description() string     { return "A tool of the worker's tests." }
func (f *fn) IsLongRunning() bool     { return f.long }
func (f *fn) Settings() tool.Settings { return f.settings }
func (f *fn) Declaration() *genai.FunctionDeclaration {
	schema := f.schema
	if schema == "" {
		schema = `{"type":"object","properties":{}}`
	}
	return &genai.FunctionDeclaration{Name: f.name, ParametersJsonSchema: json.RawMessage(schema)}
}
func (f *fn) Run(tool.Context, any) (map[string]any, error) { panic("RunJSON is called instead") }
func (f *fn) RunJSON(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
	return f.run(ctx, args)
}

// echo answers its arguments.
func echo(name string, effect tool.Effect) *fn {
	return &fn{name: name, settings: tool.Settings{Effect: effect}, run: func(_ tool.Context, args json.RawMessage) (json.RawMessage, error) { return args, nil }}
}

// gate is a tool whose calls wait until they are let through or their context ends.
type gate struct {
	fn
	mu      sync.Mutex
	started []string // call ids, in order
	open    chan struct{}
}

func newGate(name string, effect tool.Effect) *gate {
	g := &gate{open: make(chan struct{})}
	g.name, g.settings.Effect = name, effect
	g.settings.Timeout = time.Hour
	g.run = func(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
		g.mu.Lock()
		g.started = append(g.started, ctx.FunctionCallID())
		g.mu.Unlock()
		select {
		case <-g.open:
			return json.RawMessage(`"through"`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return g
}

func (g *gate) starts() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.started)
}

// fabric is a world with the part of a coordinator that workers meet.
type fabric struct {
	t     *testing.T
	names natswire.Names
	world *sim.World
	bus   *sim.Bus // the coordinator's
	all   []*process
}

// inBubble runs a test in virtual time on a plain world.
func inBubble(t *testing.T, test func(t *testing.T, f *fabric)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fabric{t: t, names: names(t)}
		f.world = sim.New(sim.Config{Names: f.names})
		f.bus = f.world.Connect("coordinator")
		defer f.world.Close()
		defer f.end()
		test(t, f)
	})
}

// end drains all workers, so that the bubble can end.
func (f *fabric) end() {
	f.world.Resume("")
	for _, p := range f.all {
		_ = p.drain()
	}
}

// serve makes the consumers of tools, as a coordinator does when they are registered.
func (f *fabric) serve(tools ...tool.Tool) {
	f.t.Helper()
	for _, t := range tools {
		f.consumer(t.Name(), 30*time.Second, 5)
	}
}

func (f *fabric) consumer(name string, ackWait time.Duration, maxDeliver int) {
	f.t.Helper()
	err := f.bus.EnsureConsumer(f.t.Context(), natswire.Consumer{
		Stream: f.names.Calls(), Durable: name, Filter: f.names.CallSubject(name), AckWait: ackWait, MaxDeliver: maxDeliver, MaxAckPending: -1,
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// process is a running worker.
type process struct {
	*worker.Worker
	stop  func()
	ended chan struct{}
	err   error // once ended is closed
}

// start runs a worker named node until stop, the end of the test or the death of its node.
func (f *fabric) start(node string, cfg worker.Config, tools ...tool.Tool) *process {
	f.t.Helper()
	bus := f.world.Connect(node)
	if cfg.Bus == nil {
		cfg.Bus = bus
	}
	cfg.Names, cfg.ID, cfg.Tools = f.names, node, tools
	w, err := worker.New(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bus.Context())
	p := &process{Worker: w, stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = w.Run(ctx)
	}()
	f.all = append(f.all, p)
	synctest.Wait()
	return p
}

// drain stops the worker and waits for the end of Run.
func (p *process) drain() error {
	p.stop()
	<-p.ended
	return p.err
}

// call is an envelope for a tool, good for a minute.
func (f *fabric) call(t tool.Tool, id string, args string) protocol.Envelope {
	effect := t.(tool.Configured).Settings().Effect
	if effect == "" {
		effect = tool.AtMostOnce
	}
	return protocol.Envelope{
		V: protocol.Version, App: "app", User: "u", Session: "s", Call: id, Tool: t.Name(), Digest: digest(f.t, t), Effect: effect,
		Args: json.RawMessage(args), AnswersTo: protocol.MailboxResults,
		StartBy: time.Now().Add(30 * time.Second).UnixMilli(), Deadline: time.Now().Add(time.Minute).UnixMilli(),
	}
}

func (f *fabric) publish(env protocol.Envelope) {
	f.t.Helper()
	f.publishWith(nil, env)
}

func (f *fabric) publishWith(h natswire.Header, env protocol.Envelope) {
	f.t.Helper()
	data, err := json.Marshal(env)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.bus.Publish(f.t.Context(), natswire.Msg{Subject: f.names.CallSubject(env.Tool), Header: h, Data: data}); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
}

// result is what stands in a call's mailbox; false when it is empty.
func (f *fabric) result(env protocol.Envelope) (protocol.Result, bool) {
	f.t.Helper()
	synctest.Wait()
	stored, err := f.bus.Last(f.t.Context(), f.names.Results(), f.names.ResultSubject(env.Tool, env.Session, env.Call, env.Round))
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return protocol.Result{}, false
	}
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := protocol.DecodeResult(stored.Data)
	if err != nil {
		f.t.Fatal(err)
	}
	return r, true
}

// want checks the outcome, code and value of a call's result; "" is any value.
func (f *fabric) want(env protocol.Envelope, how protocol.Outcome, code protocol.Code, value string) protocol.Result {
	f.t.Helper()
	r, ok := f.result(env)
	if !ok {
		f.t.Fatalf("call %s has no result", env.Call)
	}
	if r.Outcome != how || r.Code != code || value != "" && string(r.Value) != value {
		f.t.Fatalf("call %s ended as %s %q %s, want %s %q %s", env.Call, r.Outcome, r.Code, r.Value, how, code, value)
	}
	return r
}

// queue is what the queue of a tool holds.
func (f *fabric) queue(tool string) natswire.ConsumerState {
	f.t.Helper()
	synctest.Wait()
	st, err := f.bus.ConsumerState(f.t.Context(), f.names.Calls(), tool)
	if err != nil {
		f.t.Fatal(err)
	}
	return st
}

// wantQueue checks how many messages wait and how many are held by workers.
func (f *fabric) wantQueue(tool string, pending uint64, held int) {
	f.t.Helper()
	if st := f.queue(tool); st.Pending != pending || st.AckPending != held {
		f.t.Fatalf("queue of %s: %d pending, %d held; want %d and %d", tool, st.Pending, st.AckPending, pending, held)
	}
}

// after lets virtual time pass.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// record collects what a worker tells.
type record struct {
	mu      sync.Mutex
	settled []string
	lines   []string
}

func (r *record) events() worker.Events {
	return worker.Events{
		Waiting: func(tool string, err error) { r.add("waiting " + tool + " " + string(protocol.CodeOf(err))) },
		Serving: func(tool string) { r.add("serving " + tool) },
		Lost:    func(tool string, err error) { r.add("lost " + tool + " " + string(protocol.CodeOf(err))) },
		Settled: func(a worker.Attempt, s worker.Settlement) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.settled = append(r.settled, fmt.Sprintf("%s/%d %s", a.Call, a.Attempt, s.Way))
		},
		Draining: func(running int) { r.add(fmt.Sprintf("draining %d", running)) },
	}
}

func (r *record) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *record) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

func (r *record) ways() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.settled...)
}

// flaky is a bus that sometimes lies about a publish, and hands deliveries to the test first.
type flaky struct {
	natswire.Bus
	publish func(m natswire.Msg, do func() (natswire.Ack, error)) (natswire.Ack, error)
	deliver func(d natswire.Delivery, pass func(natswire.Delivery))
}

func (f *flaky) Publish(ctx context.Context, m natswire.Msg) (natswire.Ack, error) {
	do := func() (natswire.Ack, error) { return f.Bus.Publish(ctx, m) }
	if f.publish == nil {
		return do()
	}
	return f.publish(m, do)
}

func (f *flaky) Pull(ctx context.Context, stream, durable string, on natswire.PullEvents) (natswire.Puller, error) {
	if f.deliver != nil {
		pass := on.Deliver
		on.Deliver = func(d natswire.Delivery) { f.deliver(d, pass) }
	}
	return f.Bus.Pull(ctx, stream, durable, on)
}

var errLost = protocol.Errorf(protocol.CodeUnreachable, "the answer was lost")
