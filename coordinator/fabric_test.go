package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oracle is a model made of a function. It notes what it was asked.
type oracle struct {
	answer func(ctx context.Context, req *model.LLMRequest) ([]*genai.Part, error)

	mu    sync.Mutex
	asked []*model.LLMRequest
}

func (o *oracle) Name() string { return "oracle" }

func (o *oracle) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		o.mu.Lock()
		o.asked = append(o.asked, req)
		o.mu.Unlock()
		parts, err := o.answer(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: parts}, FinishReason: genai.FinishReasonStop}, nil)
	}
}

// requests is how often the model was asked, and the newest request.
func (o *oracle) requests() (int, *model.LLMRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asked) == 0 {
		return 0, nil
	}
	return len(o.asked), o.asked[len(o.asked)-1]
}

func text(s string) []*genai.Part { return []*genai.Part{{Text: s}} }

// says answers every request with the same text, after a while.
func says(s string, after time.Duration) *oracle {
	return &oracle{answer: func(ctx context.Context, _ *model.LLMRequest) ([]*genai.Part, error) {
		select {
		case <-time.After(after):
			return text(s), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

// journal keeps what coordinators log.
type journal struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, r.Message)
	return nil
}

func (j *journal) count(message string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if strings.Contains(l, message) {
			n++
		}
	}
	return n
}

// fabric is real coordinators on a plain World in virtual time.
type fabric struct {
	*testing.T
	w      *sim.World
	names  natswire.Names
	client *sim.Bus
	logs   *journal
	nodes  sync.WaitGroup
	said   int
	began  map[string]int64 // when a worker beat for the first time

	wrap func(natswire.Bus) natswire.Bus // what coordinators see of their bus; nil is the whole of it
}

func inBubble(t *testing.T, test func(t *testing.T, f *fabric)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, err := natswire.NewNames("")
		if err != nil {
			t.Fatal(err)
		}
		w := sim.New(sim.Config{Names: n})
		f := &fabric{T: t, w: w, names: n, client: w.Connect("client"), logs: &journal{Handler: slog.DiscardHandler}, began: map[string]int64{}}
		defer f.nodes.Wait()
		defer w.Close()
		test(t, f)
	})
}

func (f *fabric) agent(cfg llmagent.Config) agent.Agent {
	f.Helper()
	a, err := llmagent.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	return a
}

// start runs a coordinator until stop is called or its node is killed. stop returns when it has drained.
func (f *fabric) start(node string, cfg coordinator.Config) (c *coordinator.Coordinator, stop func()) {
	f.Helper()
	bus := f.w.Connect(node)
	cfg.Bus, cfg.Names, cfg.Clock = bus, f.names, bus.Clock()
	if f.wrap != nil {
		cfg.Bus = f.wrap(bus)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(f.logs)
	}
	c, err := coordinator.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bus.Context())
	done := make(chan struct{})
	f.nodes.Go(func() {
		defer close(done)
		if err := c.Run(ctx); err != nil && bus.Context().Err() == nil {
			f.Errorf("coordinator %s: %v", node, err)
		}
	})
	synctest.Wait()
	return c, func() { cancel(); <-done }
}

// say sends a message to a session and returns the input's id.
func (f *fabric) say(app, session, what string) string {
	f.Helper()
	f.said++
	id := fmt.Sprint("in-", f.said)
	f.repeat(app, session, id, what)
	return id
}

// repeat sends a message with an id that may have been used before.
func (f *fabric) repeat(app, session, id, what string) {
	f.Helper()
	content, _ := json.Marshal(genai.NewContentFromText(what, genai.RoleUser))
	data, _ := protocol.Encode(protocol.Input{V: protocol.Version, ID: id, Kind: protocol.InputMessage, Content: content})
	f.publish(natswire.Msg{Subject: f.names.InputSubject(app, "me", session), Data: data})
}

func (f *fabric) publish(m natswire.Msg) {
	f.Helper()
	if _, err := f.client.Publish(f.Context(), m); err != nil {
		f.Fatal(err)
	}
}

// entry is an event of a log.
type entry struct {
	seq uint64
	protocol.Event
}

// log is a session's events so far.
func (f *fabric) log(app, session string) (events []entry) {
	f.Helper()
	for _, m := range f.w.Messages(f.names.Log()) {
		if m.Subject != f.names.LogSubject(app, session) {
			continue
		}
		ev, err := protocol.DecodeEvent(m.Data)
		if err != nil {
			f.Fatal(err)
		}
		events = append(events, entry{m.Seq, ev})
	}
	return events
}

// pass lets virtual time go by.
func (f *fabric) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// until lets time go by until ok, at most limit, and returns how long that was.
func (f *fabric) until(limit time.Duration, what string, ok func() bool) time.Duration {
	f.Helper()
	began := time.Now()
	for synctest.Wait(); !ok(); f.pass(100 * time.Millisecond) {
		if time.Since(began) > limit {
			f.Fatalf("%s did not happen within %s", what, limit)
		}
	}
	return time.Since(began)
}

// stopped is how a session's last run came to rest; nil while it runs.
func (f *fabric) stopped(app, session string) *protocol.Stop {
	f.Helper()
	tail, err := f.client.Last(f.Context(), f.names.Log(), f.names.LogSubject(app, session))
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil
	}
	ev, derr := protocol.DecodeEvent(tail.Data)
	if err != nil || derr != nil {
		f.Fatal(err, derr)
	}
	return ev.Stop
}

// rests waits until the session is at rest.
func (f *fabric) rests(app, session string, limit time.Duration) *protocol.Stop {
	f.Helper()
	f.until(limit, "the end of the run of "+session, func() bool { return f.stopped(app, session) != nil })
	return f.stopped(app, session)
}

// adoptions is who adopted a session, in order.
func (f *fabric) adoptions(app, session string) (by []string) {
	f.Helper()
	for _, e := range f.log(app, session) {
		if e.Adopt != nil {
			by = append(by, e.Adopt.Coordinator)
		}
	}
	return by
}

// beat is a worker's registration.
func (f *fabric) beat(worker string, d protocol.Declaration, change ...func(*protocol.Registration)) {
	f.Helper()
	if f.began[worker] == 0 {
		f.began[worker] = time.Now().UnixMilli()
	}
	r := protocol.Registration{V: protocol.Version, Worker: worker, Declaration: d, Slots: 1, Started: f.began[worker]}
	for _, c := range change {
		c(&r)
	}
	data, _ := protocol.Encode(r)
	f.publish(natswire.Msg{Subject: f.names.RegistrationSubject(d.Name, worker), Data: data, TTL: 15 * time.Second})
}

func declaration(name, description string) protocol.Declaration {
	return protocol.Declaration{V: protocol.Version, Name: name, Description: description, Parameters: json.RawMessage(`{"type":"object"}`), Effect: protocol.EffectRead}
}

func pools(names ...string) (tools []tool.Tool) {
	for _, n := range names {
		tools = append(tools, tool.Pool(n))
	}
	return tools
}
