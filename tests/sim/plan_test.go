package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

// plan is all that is done to the fabric in a run: what is said to it, and what goes wrong. The seed makes it, and decides
// what happens of all that it leaves open.
type plan struct {
	Seed     uint64     `json:"seed"`
	Why      string     `json:"why,omitempty"` // of a plan that is kept
	Safety   bool       `json:"safety,omitempty"`
	Faults   sim.Faults `json:"faults"`
	Sayings  []saying   `json:"sayings"`
	Troubles []trouble  `json:"troubles,omitempty"`
	// Words are what people and the outside do about calls that wait; without any there are no such calls.
	Words []string                 `json:"words,omitempty"`
	Team  bool                     `json:"team,omitempty"`  // two agents hand over to each other, and end runs without a word
	Hooks bool                     `json:"hooks,omitempty"` // callbacks of every kind look on
	Rush  bool                     `json:"rush,omitempty"`  // half of what is said about them comes in the last moment
	Park  time.Duration            `json:"park,omitempty"`  // how long they wait; 0 is parkTimeout
	Skew  map[string]time.Duration `json:"skew,omitempty"`  // by node, of its clock
}

// saying is an input, sent At after the beginning.
type saying struct {
	At      time.Duration      `json:"at"`
	App     string             `json:"app"`
	Session string             `json:"session"`
	ID      string             `json:"id"`
	Kind    protocol.InputKind `json:"kind"`
	Text    string             `json:"text,omitempty"` // a message, the tool of a call; garbage when Kind is none
}

func (s saying) data() []byte {
	in := protocol.Input{V: protocol.Version, ID: s.ID, Kind: s.Kind}
	switch s.Kind {
	case protocol.InputMessage:
		in.Content, _ = json.Marshal(map[string]any{"role": "user", "parts": []any{map[string]string{"text": s.Text + " [" + s.Session + "]"}}})
		if s.Text == "refused" {
			in.StateDelta = map[string]json.RawMessage{"app:x": json.RawMessage(`1`)}
		}
	case protocol.InputCancel:
		in.Target = s.Text
	case protocol.InputCall:
		in.Call = &protocol.ClientCall{Tool: s.Text, Args: json.RawMessage(`{"n":12}`)}
	case "":
		return []byte(s.Text)
	}
	data, _ := json.Marshal(in)
	return data
}

// trouble is something that goes wrong with a node or a stream, At after the beginning, For so long. A node that was killed
// or drained starts again then.
type trouble struct {
	At   time.Duration `json:"at"`
	Kind string        `json:"kind"` // kill, drain, pause, cut, upgrade, full, lose, wipe
	On   string        `json:"on"`   // a node, or a stream; with lose a stream and a durable
	For  time.Duration `json:"for"`
}

// normal is the weather of most plans.
var normal = sim.Faults{LostAck: 0.03, Late: 0.03, Fail: 0.02, Timeout: 0.01, Drop: 0.05, Delay: 0.1, Twin: 0.03, Stale: 0.2, Forget: 0.02}

func scaled(f sim.Faults, by float64) sim.Faults {
	for _, rate := range faultKinds {
		*rate(&f) *= by
	}
	return f
}

var (
	nodes = []string{"c1", "c2", "w1", "w2"}
	texts = []string{"pay", "pay", "pay", "look", "chain", "chain", "hello", "hello", "hello", "bad", "refused"}
)

// planOf is the plan that a seed makes. Every fourth is of safety: the weather never clears.
func planOf(seed uint64, n natswire.Names) plan {
	r := rand.New(rand.NewPCG(seed, 7))
	p := plan{Seed: seed, Safety: seed%4 == 0, Faults: scaled(normal, []float64{0, 0.5, 1, 1, 1, 2}[r.IntN(6)])}
	if p.Safety {
		p.Faults = scaled(normal, 1+2*r.Float64())
	}
	waits := rand.New(rand.NewPCG(seed, 8)) // what follows is as it would be without
	begins := rand.New(rand.NewPCG(seed, 11))
	texts := texts
	if waits.IntN(2) == 0 {
		p.Words = slices.Compact(slices.Clone(words))
		texts = slices.Concat(texts[:5], waitingTexts, waitingTexts)
		if waits.IntN(3) == 0 {
			p.Skew = map[string]time.Duration{nodes[waits.IntN(2)]: time.Duration(waits.Int64N(int64(20*time.Minute))) - 10*time.Minute}
		}
	}
	span := time.Duration(5+r.IntN(25)) * time.Second
	at := func() time.Duration { return time.Duration(r.Int64N(int64(span))) }
	sessions := 1 + r.IntN(3)
	for i := range 1 + r.IntN(3*sessions) {
		s := saying{At: at(), App: "payer", Session: fmt.Sprint("s", r.IntN(sessions)), ID: fmt.Sprint("in", i), Kind: protocol.InputMessage, Text: texts[r.IntN(len(texts))]}
		switch r.IntN(40) {
		case 0, 1, 2:
			s.Kind, s.Text = protocol.InputDelete, ""
		case 3:
			s.Kind, s.Text = "", "{"
		case 4:
			s.Text = "loop"
		case 5:
			s.Text = "bomb"
		case 6, 7, 8:
			s.App, s.Session, s.Kind, s.Text = protocol.CallsApp, fmt.Sprint("k", i), protocol.InputCall, pools[r.IntN(2)]
			if p.Words != nil && waits.IntN(2) == 0 {
				s.Text = gated[waits.IntN(len(gated))]
			}
			if begins.IntN(2) == 0 {
				s.ID = s.Session
			}
		case 9:
			if p.Words != nil {
				s.Kind, s.Text = protocol.InputCancel, ""
			}
		}
		if s.Kind == protocol.InputMessage && begins.IntN(16) == 0 { // it begins a session of its own
			s.Session = s.ID
		}
		p.Sayings = append(p.Sayings, s)
		if r.IntN(4) == 0 { // the client sends it again, soon or late
			s.At += time.Duration(r.ExpFloat64() * float64(3*time.Second))
			p.Sayings = append(p.Sayings, s)
		}
		if r.IntN(3) == 0 { // another word while the first is being answered
			s.At += time.Duration(r.ExpFloat64() * float64(time.Second))
			s.ID += "-more"
			s.Text, s.Kind, s.App, s.Session = texts[r.IntN(len(texts))], protocol.InputMessage, "payer", fmt.Sprint("s", r.IntN(sessions))
			p.Sayings = append(p.Sayings, s)
		}
	}
	switch r.IntN(60) {
	case 0: // long enough for snapshots
		for i := range 12 {
			p.Sayings = append(p.Sayings, saying{At: time.Duration(i) * 20 * time.Second, App: "payer", Session: "long", ID: fmt.Sprint("long", i), Kind: protocol.InputMessage, Text: "loop"})
		}
	case 1, 2, 3:
		p.Sayings = append(p.Sayings, saying{At: at(), App: "payer", Session: "doomed", ID: "doom", Kind: protocol.InputMessage, Text: "doom"})
	}
	streams := []string{n.Input(), n.Log(), n.Calls(), n.Results(), n.Timers()}
	durables := []string{n.Input() + " payer", n.Timers() + " payer", n.Calls() + " pay", n.Calls() + " look", n.Input() + " calls", n.Timers() + " calls"}
	if p.Words != nil {
		streams = append(streams, n.Wake(), n.Approval(), n.ParkStream())
		durables = append(durables, n.Wake()+" payer", n.Approval()+" payer")
	}
	for range r.IntN(7) {
		t := trouble{At: at() + time.Duration(r.IntN(3))*5*time.Second, On: nodes[r.IntN(len(nodes))], For: time.Duration(r.ExpFloat64() * float64(10*time.Second))}
		switch r.IntN(20) {
		case 0:
			t.Kind, t.On = "full", streams[r.IntN(len(streams))]
		case 1:
			t.Kind, t.On = "lose", durables[r.IntN(len(durables))]
		case 2:
			t.Kind, t.On = "upgrade", nodes[2+r.IntN(2)]
		case 3, 4, 5, 6:
			t.Kind = "drain"
		case 7, 8, 9, 10:
			t.Kind = "pause"
			t.For *= 2
		case 11, 12, 13:
			t.Kind = "cut"
		default:
			t.Kind = "kill"
			t.For /= 2
			if r.IntN(5) == 0 {
				t.For = time.Hour // for good
			}
		}
		p.Troubles = append(p.Troubles, t)
	}
	if r.IntN(10) == 0 { // the lights go out
		when := at()
		for _, node := range nodes {
			p.Troubles = append(p.Troubles, trouble{At: when, Kind: "kill", On: node, For: time.Duration(r.Int64N(int64(20 * time.Second)))})
		}
	}
	p.Rush = p.Words != nil && waits.IntN(5) == 0
	if teams := rand.New(rand.NewPCG(seed, 9)); teams.IntN(3) == 0 { // the other plans are as they would be without
		p.Team = true
		for i := range p.Sayings {
			if s := &p.Sayings[i]; s.Kind == protocol.InputMessage && s.Text != "doom" && s.Session != "long" && teams.IntN(2) == 0 {
				s.Text = teamTexts[teams.IntN(len(teamTexts))]
			}
		}
	}
	p.Hooks = rand.New(rand.NewPCG(seed, 10)).IntN(3) == 0
	return p
}

// doomed reports whether the plan kills coordinators again and again.
func (p plan) doomed() bool {
	return slices.ContainsFunc(p.Sayings, func(s saying) bool { return s.Text == "doom" })
}

// wipes reports whether the plan loses streams, which the walk over the logs makes up for.
func (p plan) wipes() bool {
	return slices.ContainsFunc(p.Troubles, func(t trouble) bool { return t.Kind == "wipe" })
}

// walked is how long the slowest coordinator takes for a walk over all logs, from its start on, and a guard to fire after it.
const walked = 17 * time.Minute

// patience is how long after the weather cleared everything must have come to rest: the longest deadline of a call and the
// guards of its adopters; a session that kills its coordinators is adopted with growing delays.
func (p plan) patience() time.Duration {
	d := 4 * time.Minute
	if p.doomed() {
		d = 12 * time.Minute
	}
	if len(p.Words) > 0 {
		d += 8 * time.Minute
	}
	if p.wipes() {
		d += walked + 5*p.Park // one after the other
	}
	return d
}

type moment struct {
	at time.Duration
	do func()
}

// moments is the plan in order.
func (p plan) moments(f *fabric, client *sim.Bus, talk *sync.WaitGroup) []moment {
	var all []moment
	for _, s := range p.Sayings {
		all = append(all, moment{s.At, func() { talk.Go(func() { f.say(client, s) }) }})
	}
	for _, t := range p.Troubles {
		begin, end := f.trouble(client, t)
		all = append(all, moment{t.At, begin})
		if t.For < time.Hour {
			all = append(all, moment{t.At + t.For, end})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return int(a.at - b.at) })
	return all
}

// run carries the plan out. A plan of safety is judged in the middle of the storm, one of liveness when everything has
// come to rest.
func (p plan) run(f *fabric) []sim.Violation {
	for _, node := range nodes {
		f.start(node)
	}
	client := f.w.Connect("client")
	f.await(client)
	f.w.SetFaults(p.Faults)
	var talk sync.WaitGroup
	if len(p.Words) > 0 {
		crowd := &people{f: f, p: p, bus: f.w.Connect("people")}
		ctx, leave := context.WithCancel(crowd.bus.Context())
		crowd.all.Go(func() { crowd.watch(ctx) })
		defer crowd.all.Wait()
		defer leave()
	}
	begin := time.Now()
	for _, m := range p.moments(f, client, &talk) {
		pass(m.at - time.Since(begin))
		m.do()
	}
	if p.Safety {
		pass(30 * time.Second)
		return sim.Check(f.history())
	}
	f.w.SetFaults(sim.Faults{})
	if f.alone("c1", "c2") {
		f.start("c1")
	}
	if f.alone("w1", "w2") {
		f.start("w1")
	}
	talk.Wait()
	for calm := time.Now(); time.Since(calm) < p.patience(); {
		if f.lost && time.Since(calm) < walked {
			pass(walked)
			f.lost = false
		}
		pass(max(5*time.Second, p.Park/50))
		if len(p.Words) > 0 {
			if found := sim.CheckAtRest(f.history()); len(found) > 0 {
				return found
			}
		}
		if f.atRest() && len(sim.CheckQuiet(f.history())) == 0 {
			return nil
		}
	}
	return sim.CheckQuiet(f.history())
}

// alone reports whether none of the nodes runs.
func (f *fabric) alone(nodes ...string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(nodes, func(n string) bool {
		p := f.running[n]
		return p != nil && p.bus.Context().Err() == nil && !p.ends
	})
}

func (f *fabric) trouble(client *sim.Bus, t trouble) (begin, end func()) {
	again := func() { f.start(t.On) }
	switch t.Kind {
	case "kill":
		return func() { f.w.Kill(t.On) }, again
	case "drain":
		return func() { f.drain(t.On) }, again
	case "upgrade":
		return func() {
			f.mu.Lock()
			f.newer[t.On] = true
			f.mu.Unlock()
			f.drain(t.On)
		}, again
	case "pause":
		return func() { f.w.Pause(t.On) }, func() { f.w.Resume(t.On) }
	case "cut":
		return func() { f.w.Cut(t.On) }, func() { f.w.Heal(t.On) }
	case "full":
		return func() { _ = f.w.Fill(t.On, 1) }, func() { _ = f.w.Fill(t.On, 0) }
	case "wipe":
		return func() { _ = f.w.Wipe(t.On) }, func() {}
	case "lose":
		var stream, durable string
		_, _ = fmt.Sscan(t.On, &stream, &durable)
		return func() { _ = client.DeleteConsumer(client.Context(), stream, durable) }, func() {}
	}
	panic("no trouble is named " + t.Kind)
}
