package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

// gated are the tools that wait: for a person by declaration, by their own question, by a function of their arguments, and
// for the outside.
var gated = []string{"gate", "ask", "picky", "slow"}

const waitingTalk = `
rules:
  - {user: '^gate', turn: 0, calls: [{tool: gate, args: {n: 1}}, {tool: look, args: {n: 11}}]}
  - {user: '^gates', turn: 1, calls: [{tool: gate, args: {n: 2}}, {tool: gate, args: {n: 3}}]}
  - {user: '^quorum', turn: 0, calls: [{tool: gate, args: {n: 100}}]}
  - {user: '^strict', turn: 0, calls: [{tool: gate, args: {n: 200}}, {tool: pay, args: {n: 12}}]}
  - {user: '^policy', turn: 0, calls: [{tool: pay, args: {n: 300}}, {tool: ask, args: {n: 300}}]}
  - {user: '^ask', turn: 0, calls: [{tool: ask, args: {n: 1}}]}
  - {user: '^twice', turn: 0, calls: [{tool: ask, args: {n: 2}}, {tool: look, args: {n: 13}}]}
  - {user: '^picky', turn: 0, calls: [{tool: picky, args: {n: 1}}, {tool: picky, args: {n: 2}}]}
  - {user: '^slow', turn: 0, calls: [{tool: slow, args: {n: 0}}]}
  - {user: '^ticket', turn: 0, calls: [{tool: slow, args: {n: 1}}, {tool: look, args: {n: 14}}]}
  - {user: '^ticket', turn: 1, calls: [{tool: gate, args: {n: 4}}]}
  - {user: '^mixed', turn: 0, calls: [{tool: gate, args: {n: 5}}, {tool: slow, args: {n: 3}}, {tool: pay, args: {n: 15}}, {tool: ask, args: {n: 3}}]}
  - {user: '^mixed', turn: 1, calls: [{tool: pay, args: {n: 16}}]}
`

var waitingTexts = []string{"gate", "gates", "quorum", "strict", "policy", "ask", "twice", "picky", "slow", "ticket", "mixed", "mixed"}

// rules are the operator's: larger numbers are stricter.
var rules = sync.OnceValue(func() *policy.Policy {
	p, err := policy.Compile([]policy.Rule{
		{Name: "two", When: "tool == 'gate' && args.n >= 100", Need: 2, Tighten: true},
		{Name: "other", When: "tool == 'picky' || tool == 'gate' && args.n >= 100", NotRequester: true, Tighten: true},
		{Name: "large", When: "tool in ['pay', 'ask'] && args.n >= 300", EnforceDenial: true},
	})
	if err != nil {
		panic(err)
	}
	return p
})

// parkTimeout is how long calls wait, unless the plan says otherwise.
const parkTimeout = 40 * time.Second

// waitingTools are the tools of gated. Their effect is what people agree to; a tool that asks has none before.
func (f *fabric) waitingTools(bus *sim.Bus) []tool.Tool {
	start := func(ctx tool.Context, name string, in amount) error {
		args, _ := json.Marshal(in)
		h, _ := protocol.ParseHandle(ctx.ResultHandle())
		if err := bus.Start(sim.Started{Call: ctx.FunctionCallID(), Tool: name, Round: h.Round - 1, Args: args}); err != nil {
			return err
		}
		if chance := f.chance(ctx.ResultHandle()); chance.IntN(3) == 0 {
			return natswire.Sleep(ctx, bus.Clock(), time.Duration(chance.ExpFloat64()*float64(3*time.Second)))
		}
		return nil
	}
	var all []tool.Tool
	add := func(cfg functiontool.Config, run func(ctx tool.Context, in amount) (map[string]any, error)) {
		cfg.Description, cfg.Timeout, cfg.QueueTimeout, cfg.ParkTimeout = "Waits", 10*time.Second, 20*time.Second, f.park
		made, err := functiontool.New(cfg, run)
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, made)
	}
	plain := func(name string) func(ctx tool.Context, in amount) (map[string]any, error) {
		return func(ctx tool.Context, in amount) (map[string]any, error) {
			return map[string]any{"n": in.N}, start(ctx, name, in)
		}
	}
	add(functiontool.Config{Name: "gate", RequireConfirmation: true, Effect: tool.Idempotent}, plain("gate"))
	add(functiontool.Config{Name: "picky", Effect: tool.Idempotent, RequireConfirmationProvider: func(in amount) bool { return in.N%2 == 1 }}, plain("picky"))
	add(functiontool.Config{Name: "ask"}, func(ctx tool.Context, in amount) (map[string]any, error) {
		word := ctx.ToolConfirmation()
		switch {
		case word == nil:
			return nil, ctx.RequestConfirmation("may I?", nil)
		case !word.Confirmed:
			return map[string]any{"refused": true}, nil
		case in.N == 2:
			if stage, err := ctx.State().Get("asked-" + ctx.FunctionCallID()); err != nil || stage == nil {
				ctx.Actions().StateDelta = map[string]any{"asked-" + ctx.FunctionCallID(): true}
				return nil, ctx.RequestConfirmation("really?", nil)
			}
		}
		return map[string]any{"n": in.N}, start(ctx, "ask", in)
	})
	add(functiontool.Config{Name: "slow", IsLongRunning: true}, func(ctx tool.Context, in amount) (map[string]any, error) {
		if err := start(ctx, "slow", in); err != nil {
			return nil, err
		}
		if in.N == 1 {
			return map[string]any{"ticket": ctx.FunctionCallID()}, nil
		}
		return nil, nil
	})
	return all
}

// Words are what people do about a question or a call that waits for the outside, one of them each time; a plan says which
// of them it has.
var words = []string{"yes", "yes", "yes", "yes", "yes", "twice", "no", "both", "conflict", "edit", "edits", "malformed", "digest", "wrong", "unknown", "edge", "edge",
	"late", "requester", "cancel", "cancelrun", "message", "delete", "silence", "two", "interim", "fail", "old"}

// people is everybody who decides and everything outside that finishes calls. They watch the log as it is.
type people struct {
	f   *fabric
	p   plan
	bus *sim.Bus
	all sync.WaitGroup
}

func (p *people) watch(ctx context.Context) {
	seen := 0
	for natswire.Sleep(ctx, p.bus.Clock(), 300*time.Millisecond) == nil {
		records := p.f.w.RecordsFrom(seen)
		seen += len(records)
		for _, r := range records {
			app, session, ok := p.f.n.ParseLog(r.Subject)
			if !ok || r.Stream != p.f.n.Log() {
				continue
			}
			if ev, err := protocol.DecodeEvent(r.Data); err == nil {
				p.event(ctx, app, session, ev)
			}
		}
	}
}

func (p *people) event(ctx context.Context, app, session string, ev protocol.Event) {
	ask := func(call, tool string, q *protocol.Confirmation) {
		if q != nil {
			p.all.Go(func() { p.decide(ctx, app, session, call, q) })
		}
	}
	for _, in := range ev.Inputs {
		if in.Decision != nil && in.Refused == nil {
			ask("", "", in.Decision.Asks)
		}
	}
	for _, a := range ev.Answers {
		ask(a.Call, "", a.Confirmation)
		if a.Outcome == protocol.OutcomePending {
			end := time.UnixMilli(ev.At).Add(p.f.park)
			p.all.Go(func() {
				p.finish(ctx, protocol.Handle{App: app, Tool: "slow", Session: session, Call: a.Call, Round: a.Round + 1}, end)
			})
		}
	}
	if ev.Turn != nil {
		for _, c := range ev.Turn.Calls {
			ask(c.ID, c.Tool, c.Confirmation)
		}
	}
}

// pick is what is done about something, and a source for how.
func (p *people) pick(about string) (word string, soon func() time.Duration) {
	chance := p.f.chance("people " + about)
	word = words[chance.IntN(len(words))]
	if !slices.Contains(p.p.Words, word) {
		word = "silence"
	}
	if p.p.Rush && p.f.chance("rush "+about).IntN(2) == 0 {
		word = "edge"
	}
	return word, func() time.Duration { return time.Duration(chance.ExpFloat64() * float64(4*time.Second)) }
}

// edge is when somebody speaks about the time that a wait ends: after d, or in its last milliseconds, while the stream
// hands nothing out or a coordinator stands still, so that the end comes before the word.
func (p *people) edge(ctx context.Context, about, stream string, end time.Time, d time.Duration) time.Duration {
	chance := p.f.chance("last moment " + about)
	if time.Until(end) < 3*time.Second {
		return d
	}
	last := time.Duration(1+chance.Int64N(40)) * time.Millisecond
	for range 1 + chance.IntN(2) {
		begin, over := func() { _ = p.f.w.Stall(stream) }, func() { _ = p.f.w.Flow(stream) }
		how := chance.IntN(8)
		if how == 0 {
			return d
		}
		if how < 3 {
			node := nodes[chance.IntN(2)]
			begin, over = func() { p.f.w.Pause(node) }, func() { p.f.w.Resume(node) }
		}
		before, after := time.Duration(chance.Int64N(int64(time.Second))), time.Duration(chance.ExpFloat64()*float64(3*time.Second))
		p.all.Go(func() {
			if p.pause(ctx, time.Until(end)-last-before) {
				begin()
				_ = p.pause(ctx, last+before+after)
				over()
			}
		})
	}
	return time.Until(end) - last
}

func (p *people) pause(ctx context.Context, d time.Duration) bool {
	return natswire.Sleep(ctx, p.bus.Clock(), d) == nil
}

// publish tries until the broker took it.
func (p *people) publish(ctx context.Context, subject string, data string) {
	for {
		_, err := p.bus.Publish(ctx, natswire.Msg{Subject: subject, Data: []byte(data)})
		if err == nil || protocol.CodeOf(err) == protocol.CodeAnswered || !p.pause(ctx, 200*time.Millisecond) {
			return
		}
	}
}

func (p *people) input(ctx context.Context, s saying) {
	p.publish(ctx, p.f.n.InputSubject(s.App, "me", s.Session), string(s.data()))
}

// besides are what people do instead of answering. It reports whether that was it.
func (p *people) besides(ctx context.Context, word, app, session, call, about string) bool {
	s := saying{App: app, Session: session, ID: word + "-" + about}
	switch word {
	case "cancel":
		s.Kind, s.Text = protocol.InputCancel, call
	case "cancelrun":
		s.Kind = protocol.InputCancel
	case "message":
		s.Kind, s.Text = protocol.InputMessage, "hello"
		if app == protocol.CallsApp {
			return false
		}
	case "delete":
		s.Kind = protocol.InputDelete
	default:
		return false
	}
	p.input(ctx, s)
	return true
}

func (p *people) decide(ctx context.Context, app, session, call string, q *protocol.Confirmation) {
	word, soon := p.pick(q.ID)
	say := func(who, what string) {
		p.publish(ctx, p.f.n.ApprovalSubject(app, session, q.ID, who), what)
	}
	edit := fmt.Sprintf(`{"confirmed":true,"args":{"n":%d}}`, 40+len(q.ID)%7)
	const yes, no = `{"confirmed":true}`, `{"confirmed":false}`
	if word == "edge" || word == "late" { // when its time is over
		d := time.Until(time.UnixMilli(q.Expires)) + soon()/8 - 300*time.Millisecond
		if word == "late" {
			d += 5 * time.Second
		} else {
			d = p.edge(ctx, q.ID, p.f.n.Approval(), time.UnixMilli(q.Expires), d)
		}
		switch {
		case !p.pause(ctx, d):
		case p.f.chance("edge "+q.ID).IntN(2) == 0:
			say("ann", edit)
		default:
			say("ann", yes)
			say("ben", yes)
		}
		return
	}
	if word == "silence" || !p.pause(ctx, soon()) {
		return
	}
	together := func(all ...func()) {
		var wg sync.WaitGroup
		for _, do := range all {
			wg.Go(do)
		}
		wg.Wait()
	}
	switch word {
	case "no":
		say("ann", no)
	case "twice", "two":
		together(func() { say("ann", yes) }, func() { say("ann", yes) }, func() { say("ben", yes) })
	case "both":
		together(func() { say("ann", yes) }, func() { say("ben", no) })
	case "conflict":
		say("ann", yes)
		say("ann", no)
	case "edit", "edits":
		say("ann", edit)
		if word == "edits" { // and somebody who saw the old arguments agrees
			say("ben", yes)
		}
	case "malformed":
		say("ann", "{")
	case "digest":
		say("ann", `{"confirmed":true,"digest":"of something else"}`)
	case "wrong":
		p.publish(ctx, p.f.n.ApprovalSubject(app, "another", q.ID, "ann"), yes)
	case "unknown":
		p.publish(ctx, p.f.n.ApprovalSubject(app, session, "nothing", "ann"), yes)
	case "requester":
		say("me", yes)
	default:
		if p.besides(ctx, word, app, session, call, q.ID) && p.f.chance("too "+q.ID).IntN(2) == 0 {
			return
		}
	}
	if slices.Contains([]string{"no", "both", "edit", "edits"}, word) {
		return
	}
	if p.pause(ctx, soon()) {
		say("ann", yes)
		if q.Need > 1 && p.pause(ctx, soon()) {
			say("ben", yes)
		}
	}
}

// finish is the world outside that a long-running call waits for.
func (p *people) finish(ctx context.Context, h protocol.Handle, end time.Time) {
	word, soon := p.pick(h.String())
	value := map[string]any{"done": h.Round}
	complete := func(h protocol.Handle) {
		for {
			err := worker.Complete(ctx, p.bus, p.f.n, h.String(), value)
			if err == nil || protocol.CodeOf(err) == protocol.CodeAnswered || !p.pause(ctx, 200*time.Millisecond) {
				return
			}
		}
	}
	d := soon()
	switch word {
	case "silence", "no":
		return
	case "edge":
		d = p.edge(ctx, h.String(), p.f.n.Wake(), end, time.Until(end)+soon()/8-time.Second)
	case "late":
		d = parkTimeout + 5*time.Second
	}
	if !p.pause(ctx, d) {
		return
	}
	switch word {
	case "edge":
		complete(h)
		return
	case "both", "twice", "two":
		var wg sync.WaitGroup
		wg.Go(func() { complete(h) })
		value := map[string]any{"other": true}
		wg.Go(func() { _ = worker.Complete(ctx, p.bus, p.f.n, h.String(), value) })
		wg.Wait()
		return
	case "fail":
		_ = worker.Fail(ctx, p.bus, p.f.n, h.String(), errors.New("it came to nothing"))
	case "interim", "edit":
		_, _ = worker.Interim(ctx, p.bus, p.f.n, h.String(), nil, float64(10*h.Round))
		return
	case "old": // for a round that is over
		h.Round--
		if h.Round > 0 {
			complete(h)
		}
		return
	case "unknown":
		complete(protocol.Handle{App: h.App, Tool: h.Tool, Session: h.Session, Call: "nothing", Round: 1})
	case "wrong":
		complete(protocol.Handle{App: h.App, Tool: "pay", Session: h.Session, Call: h.Call, Round: h.Round})
	case "malformed":
		p.publish(ctx, p.f.n.WakeSubject(h.App, h.Tool, h.Session, h.Call, h.Round), "{")
		return
	default:
		if p.besides(ctx, word, h.App, h.Session, h.Call, fmt.Sprint(h.Call, "-", h.Round)) && p.f.chance("too "+h.String()).IntN(2) == 0 {
			return
		}
	}
	if p.pause(ctx, soon()) {
		complete(h)
	}
}
