package sim_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

// fabric is two coordinators and two workers, real ones, on a World.
type fabric struct {
	t     *testing.T
	w     *sim.World
	n     natswire.Names
	seed  uint64
	nodes sync.WaitGroup

	mu      sync.Mutex
	lives   map[string]int
	running map[string]*process // the newest of each node
	newer   map[string]bool     // workers that serve the newer version of look
	tries   map[string]int      // of calls that fail at first
	waits   bool                // the tools of gated are served
	team    bool                // the agent has another one below it
	hooks   bool                // callbacks look on
	park    time.Duration       // how long their calls wait
	lost    bool                // what was wiped is not back yet
	over    bool                // nothing starts any more
}

// process is one life of a node.
type process struct {
	bus  *sim.Bus
	stop context.CancelFunc // SIGTERM
	ends bool               // it was told to
}

const (
	modelCalls = 10
	deliveries = 5
	wallTime   = 45 * time.Second // of runs in which calls wait
)

// pools are the tools, which serve from the start: what is asked before a tool is known is refused, which tests nothing.
var pools = []string{"pay", "look", "bomb"}

const talk = `
rules:
  - {user: '^pay', turn: 0, calls: [{tool: pay, args: {n: 1}}, {tool: look, args: {n: 1}}]}
  - {user: '^look', turn: 0, calls: [{tool: look, args: {n: 2}}, {tool: look, args: {n: 3}}]}
  - {user: '^chain', turn: 0, calls: [{tool: look, args: {n: 4}}]}
  - {user: '^chain', turn: 1, calls: [{tool: pay, args: {n: 5}}]}
  - {user: '^chain', turn: 2, calls: [{tool: pay, args: {n: 6}}, {tool: look, args: {n: 6}}, {tool: pay, args: {n: 7}}]}
  - {user: '^bad', turn: 0, calls: [{tool: nothing, args: {n: 1}}, {tool: pay, args: {n: many}}, {tool: look, args: {n: 8}}]}
  - {user: '^bomb', turn: 0, calls: [{tool: bomb, args: {n: 9}}]}
  - {user: '^loop', after: [], calls: [{tool: look, args: {n: 10}}]}
  - {user: '.', after: [], text: 'done'}
`

func newFabric(t *testing.T, w *sim.World, p plan) *fabric {
	f := &fabric{t: t, w: w, n: names(t), seed: p.Seed, waits: len(p.Words) > 0, team: p.Team, hooks: p.Hooks, park: cmp.Or(p.Park, parkTimeout), lost: p.wipes(), lives: map[string]int{}, running: map[string]*process{}, newer: map[string]bool{}, tries: map[string]int{}}
	for node, d := range p.Skew {
		w.Skew(node, d)
	}
	return f
}

func (f *fabric) pools() []string {
	if f.waits {
		return slices.Concat(pools, gated)
	}
	return pools
}

// start runs a node unless it runs.
func (f *fabric) start(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.running[node]; f.over || p != nil && p.bus.Context().Err() == nil && !p.ends {
		return
	}
	f.lives[node]++
	life := fmt.Sprintf("%s-%d", node, f.lives[node])
	p := &process{bus: f.w.Connect(node)}
	ctx, stop := context.WithCancel(p.bus.Context())
	p.stop = stop
	f.running[node] = p
	newID := counter(life)
	var run func(context.Context) error
	var err error
	if strings.HasPrefix(node, "c") {
		var c *coordinator.Coordinator
		cfg := coordinator.Config{Bus: p.bus, Names: f.n, Clock: p.bus.Clock(), NewID: newID, CallDeliveries: deliveries, Policy: f.policy()}
		var o *onlookers
		if f.hooks {
			o = &onlookers{f: f, life: life, bus: p.bus, seen: map[string]int{}}
			looks, err := o.plugin()
			if err != nil {
				f.t.Fatal(err)
			}
			cfg.Plugins = []*plugin.Plugin{looks}
		}
		cfg.Agents = []agent.Agent{f.agent(node, life, p.bus, o)}
		c, err = coordinator.New(cfg)
		run = c.Run
	} else {
		var w *worker.Worker
		w, err = worker.New(worker.Config{Bus: p.bus, Names: f.n, Clock: p.bus.Clock(), NewID: newID, ID: life, Host: "host", Tools: f.tools(node, p.bus, f.newer[node]), Slots: len(f.pools()) + 1, Grace: 5 * time.Second})
		run = w.Run
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.nodes.Go(func() {
		defer stop()
		for run(ctx) != nil && ctx.Err() == nil && strings.HasPrefix(node, "c") { // it could not start
			if natswire.Sleep(ctx, p.bus.Clock(), time.Second) != nil {
				break
			}
		}
		p.bus.Leave()
	})
}

func (f *fabric) limits() llmagent.Limits {
	l := llmagent.Limits{ModelCalls: modelCalls}
	if f.waits {
		l.WallTime = wallTime
	}
	return l
}

func (f *fabric) policy() *policy.Policy {
	if f.waits {
		return rules()
	}
	return nil
}

// end kills all nodes and waits for them.
func (f *fabric) end() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.w.Close()
	f.nodes.Wait()
}

// drain is SIGTERM.
func (f *fabric) drain(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.running[node]; p != nil {
		p.ends = true
		p.stop()
	}
}

// die kills a node from within one of its calls, and has it started again, as a supervisor would.
func (f *fabric) die(node string) {
	f.w.Kill(node)
	time.AfterFunc(time.Second, func() { f.start(node) })
}

// counter makes ids that are the same in every run of a seed.
func counter(life string) func() string {
	var mu sync.Mutex
	count := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		count++
		return fmt.Sprintf("%s-%d", life, count)
	}
}

func (f *fabric) agent(node, life string, bus *sim.Bus, o *onlookers) agent.Agent {
	var tools []tool.Tool
	for _, name := range f.pools() {
		tools = append(tools, tool.Pool(name))
	}
	says := func(name, life string) llmagent.Config {
		m := &speaker{LLM: scripted.New("scripted", scriptOf(name, f.waits, f.team)), f: f, node: node, life: life, bus: bus, asked: map[string]int{}}
		cfg := llmagent.Config{Name: name, Model: m, Tools: tools, Limits: f.limits()}
		if o != nil {
			o.watch(&cfg)
		}
		return cfg
	}
	cfg := says("payer", life)
	if f.team {
		exit, _ := exitlooptool.New()
		tools = append(tools, exit)
		cfg.Tools = tools
		cfg.SubAgents = []agent.Agent{f.made(says("teller", life+"t"))}
	}
	return f.made(cfg)
}

func (f *fabric) made(cfg llmagent.Config) agent.Agent {
	a, err := llmagent.New(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

// speaker is a model that takes its time, marks each of its answers and keeps the ledger of them. A user's text ends in
// the name of the session in brackets.
type speaker struct {
	model.LLM
	f          *fabric
	node, life string
	bus        *sim.Bus

	mu    sync.Mutex
	asked map[string]int
}

var inSession = regexp.MustCompile(`\[(\w+)\]$`)

func (m *speaker) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		text := ""
		for _, c := range req.Contents {
			for _, p := range c.Parts {
				if c.Role == genai.RoleUser && p.Text != "" && c.Parts[0].Text != "For context:" { // what other agents said
					text = p.Text
				}
			}
		}
		session := "none"
		if found := inSession.FindStringSubmatch(text); found != nil {
			session = found[1]
		}
		m.mu.Lock()
		m.asked[session]++
		mark := fmt.Sprintf("answer-%s-%s-%d", m.life, session, m.asked[session])
		m.mu.Unlock()
		if strings.HasPrefix(text, "doom") {
			m.f.die(m.node)
		}
		chance := m.f.chance(mark)
		if natswire.Sleep(ctx, m.bus.Clock(), time.Duration(chance.ExpFloat64()*float64(400*time.Millisecond))) != nil {
			yield(nil, protocol.ContextError(ctx))
			return
		}
		for resp, err := range m.LLM.GenerateContent(ctx, req, stream) {
			if err == nil {
				resp.Content = marked(resp.Content, mark)
			}
			if err == nil && !resp.Partial {
				m.bus.Ask(sim.Asked{Session: "payer." + session, Answer: mark, Wrong: unpaired(req.Contents)})
			}
			if !yield(resp, err) {
				return
			}
		}
	}
}

// unpaired says which call of a request does not have exactly one response, right behind its turn and in call order; empty
// is none.
func unpaired(contents []*genai.Content) string {
	for i, c := range contents {
		var calls, responses []string
		for _, p := range c.Parts {
			if p.FunctionCall != nil {
				calls = append(calls, p.FunctionCall.ID)
			}
		}
		if i+1 < len(contents) {
			for _, p := range contents[i+1].Parts {
				if p.FunctionResponse != nil {
					responses = append(responses, p.FunctionResponse.ID)
				}
			}
		}
		if !slices.Equal(calls, responses) {
			return fmt.Sprint("calls ", calls, " have the responses ", responses)
		}
	}
	return ""
}

func marked(c *genai.Content, mark string) *genai.Content {
	if c == nil {
		return nil
	}
	out := &genai.Content{Role: c.Role}
	for i, p := range c.Parts {
		q := *p
		if p.FunctionCall != nil {
			fc := *p.FunctionCall
			fc.ID = fmt.Sprint(mark, "_", i)
			q.FunctionCall = &fc
		} else if p.Text != "" {
			q.Text += " " + mark
		}
		out.Parts = append(out.Parts, &q)
	}
	return out
}

// chance is a source of its own for something that has a name.
func (f *fabric) chance(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(f.seed, h.Sum64()))
}

type amount struct {
	N int `json:"n"`
}

func (f *fabric) tools(node string, bus *sim.Bus, newer bool) []tool.Tool {
	effect := func(name string, after func(ctx tool.Context, in amount) error) func(tool.Context, amount) (map[string]any, error) {
		return func(ctx tool.Context, in amount) (map[string]any, error) {
			args, _ := json.Marshal(in)
			call := ctx.FunctionCallID()
			h, _ := protocol.ParseHandle(ctx.ResultHandle())
			if err := bus.Start(sim.Started{Call: call, Tool: name, Round: h.Round - 1, Args: args}); err != nil {
				return nil, err
			}
			if chance := f.chance(call); chance.IntN(3) == 0 { // it takes a while, or for ever
				d := time.Duration(chance.ExpFloat64() * float64(4*time.Second))
				if err := natswire.Sleep(ctx, bus.Clock(), d); err != nil {
					return nil, err
				}
			}
			if err := after(ctx, in); err != nil {
				return nil, err
			}
			ctx.Actions().StateDelta = map[string]any{name: call}
			switch in.N {
			case handsOver:
				ctx.Actions().TransferToAgent = "teller"
			case endsRun:
				ctx.Actions().SkipSummarization = true
			}
			return map[string]any{"n": in.N}, nil
		}
	}
	nothing := func(tool.Context, amount) error { return nil }
	flaky := func(ctx tool.Context, in amount) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		call := ctx.FunctionCallID()
		f.tries[call]++
		if in.N%2 == 1 && f.tries[call] == 1 && f.chance("flaky "+call).IntN(2) == 0 {
			return tool.Retryable(errors.New("not yet"))
		}
		return nil
	}
	bomb := func(ctx tool.Context, _ amount) error {
		if f.chance("bomb "+ctx.FunctionCallID()).IntN(2) == 0 || node == "w1" {
			f.die(node)
		}
		return bus.Step()
	}
	look := functiontool.Config{Name: "look", Description: "Looks", Effect: tool.Idempotent, Timeout: 10 * time.Second, QueueTimeout: 20 * time.Second}
	if newer {
		look.Description = "Looks closer"
	}
	var all []tool.Tool
	add := func(cfg functiontool.Config, after func(tool.Context, amount) error) {
		made, err := functiontool.New(cfg, effect(cfg.Name, after))
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, made)
	}
	add(functiontool.Config{Name: "pay", Description: "Pays", Timeout: 10 * time.Second, QueueTimeout: 20 * time.Second, ParkTimeout: f.park}, nothing)
	add(look, flaky)
	add(functiontool.Config{Name: "bomb", Description: "Kills", Effect: tool.Idempotent, Timeout: 5 * time.Second, QueueTimeout: 20 * time.Second}, bomb)
	if f.waits {
		all = append(all, f.waitingTools(bus)...)
	}
	return all
}

// say publishes an input until the broker has acked it.
func (f *fabric) say(bus *sim.Bus, s saying) {
	m := natswire.Msg{Subject: f.n.InputSubject(s.App, "me", s.Session), Data: s.data()}
	for {
		_, err := bus.Publish(bus.Context(), m)
		if err == nil || natswire.Sleep(bus.Context(), bus.Clock(), 200*time.Millisecond) != nil {
			return
		}
	}
}

// await waits until the pools have their consumers.
func (f *fabric) await(client *sim.Bus) {
	for _, name := range f.pools() {
		for {
			if _, err := client.ConsumerState(client.Context(), f.n.Calls(), name); err == nil || client.Context().Err() != nil {
				break
			}
			pass(time.Second)
		}
	}
}

// atRest reports cheaply whether it is worth to look closer.
func (f *fabric) atRest() bool {
	return !slices.ContainsFunc([]string{f.n.Input(), f.n.Timers(), f.n.Calls()}, func(s string) bool { return f.w.Holds(s) > 0 }) &&
		f.w.Unsettled(f.n.Wake())+f.w.Unsettled(f.n.Approval()) == 0
}

func (f *fabric) history() sim.History {
	h := f.w.History()
	h.ModelCalls, h.Deliveries, h.WallTime = modelCalls, deliveries, wallTime
	h.Lost = f.lost
	return h
}
