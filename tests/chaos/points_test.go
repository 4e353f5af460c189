package chaos

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// point is a place where a process breaks.
type point struct {
	name string
	in   role
	at   int    // the how many-th time, so that the process is in the middle of a run
	say  string // what makes a session come by
	// recovered says that the process outlives a panic there; failed, that the run then ends with a problem.
	recovered, failed bool
	// early says that people and the outside speak all the time; otherwise nobody does before the fault.
	early bool
}

// label tells points of one name apart.
func (p point) label() string {
	if p.say == "ask" || p.say == "order" {
		return p.name + p.say
	}
	return p.name
}

type role int

const (
	inClient role = iota
	inCoordinator
	inWorker
)

var points = []point{
	{name: "K1", in: inClient},
	{name: "K2", in: inClient},
	{name: "K3", in: inCoordinator, recovered: true},
	{name: "K4", in: inCoordinator, recovered: true},
	{name: "K5", in: inCoordinator, at: 2, recovered: true},
	{name: "K6", in: inCoordinator, at: 2, recovered: true},
	{name: "K7", in: inCoordinator, recovered: true},
	{name: "K8", in: inCoordinator, recovered: true},
	{name: "K9", in: inCoordinator, at: 2, recovered: true, failed: true},
	{name: "K10", in: inCoordinator, at: 2, recovered: true},
	{name: "K11", in: inCoordinator, at: 2, recovered: true, failed: true},
	{name: "K12", in: inWorker},
	{name: "K13", in: inWorker},
	{name: "K14", in: inWorker},
	{name: "K15", in: inWorker},
	{name: "K16", in: inWorker},
	{name: "K17", in: inCoordinator, say: "ask", recovered: true},
	{name: "K17", in: inCoordinator, say: "order", recovered: true}, // the result comes before the stop
	{name: "K18", in: inCoordinator, say: "ask", recovered: true},
	{name: "K19", in: inCoordinator, say: "ask", recovered: true},
	{name: "K20", in: inCoordinator, say: "ask", recovered: true},
	{name: "K20", in: inCoordinator, say: "order", recovered: true},
	{name: "K21", in: inCoordinator, say: "ask", recovered: true, early: true},
	{name: "K21", in: inCoordinator, say: "order", recovered: true, early: true},
	{name: "K24", in: inCoordinator, say: "read", recovered: true},
	{name: "K25", in: inCoordinator, at: 10, recovered: true}, // it looks at six registrations as it starts, and every ten seconds
}

// faults are what happens at a point. A process that stops does so for longer than it takes until its guard fires.
var faults = []string{"kill", "stop", "panic"}

const (
	guard  = 15 * time.Second
	target = 20 * time.Second // from a kill to the last answer
)

// selected is what runs without -all: each role, and the points around a record and around an effect.
func selected(p point, fault string) bool {
	switch p.name {
	case "K2", "K7", "K10", "K14", "K19":
		return *all || fault == "kill"
	}
	return *all
}

// timing is how long the others took.
type timing struct {
	mu   sync.Mutex
	took map[string]time.Duration
}

func TestEveryPointMayBreak(t *testing.T) {
	skipShort(t)
	s, model := natstest.Start(t), serveModel(t)
	times := &timing{took: map[string]time.Duration{}}
	t.Run("at", func(t *testing.T) {
		for _, p := range points {
			for _, fault := range faults {
				if !selected(p, fault) {
					continue
				}
				t.Run(p.label()+"/"+fault, func(t *testing.T) {
					t.Parallel()
					pl := newPlace(t, s, model, strings.ToLower(p.label())+fault, p.timeout())
					var took time.Duration
					if p.in == inClient {
						took = pl.breakClient(p, fault)
					} else {
						took = pl.breakMember(p, fault)
					}
					times.mu.Lock()
					times.took[p.label()+fault] = took
					times.mu.Unlock()
					if *all && fault == "kill" && took > target {
						t.Errorf("it took %v until all was answered, want %v", took, target)
					}
				})
			}
		}
	})
	t.Logf("from the fault to the last answer of all that was accepted by then:\n%s", times)
}

// String is a table of points and faults.
func (s *timing) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "point\t%s\t\n", strings.Join(faults, "\t"))
	for _, p := range points {
		line, ran := p.label(), false
		for _, fault := range faults {
			took, ok := s.took[p.label()+fault]
			if ran = ran || ok; ok {
				line += fmt.Sprintf("\t%.1fs", took.Seconds())
			} else {
				line += "\t-"
			}
		}
		if ran {
			fmt.Fprintln(w, line+"\t")
		}
	}
	w.Flush()
	return b.String()
}

// timeout is that of the tool pay: it outlives a coordinator, and when a worker dies, what cannot be known is said 10 s later:
// soon where the times are judged, and otherwise long after the slowest machine has run the tool.
func (p point) timeout() time.Duration {
	switch {
	case p.in != inWorker:
		return longTimes
	case *all:
		return 4 * time.Second
	}
	return 40 * time.Second
}

// arm is what TF_FAULT says.
func (p point) arm(fault string) string { return fmt.Sprintf("%s@%d=%s", p.name, max(p.at, 1), fault) }

// breakMember breaks one of two coordinators or one of two workers, while sessions run. It returns how long it took until
// all was answered.
func (p *place) breakMember(pt point, fault string) time.Duration {
	t := p.t
	armed := func(in role) string {
		if pt.in == in {
			return pt.arm(fault)
		}
		return ""
	}
	first := p.coordinate("")
	broken, other := p.work(armed(inWorker)), p.work("")
	serving(broken, other)
	second := p.coordinate(armed(inCoordinator))
	members := []*process{first, second, broken, other}
	if pt.in == inCoordinator {
		broken = second
	}
	hit := broken.hit(pt.name)
	second.says(up)

	began := p.until(hit, pt)
	defer p.voices(pt)()
	if fault == "kill" || fault == "panic" && !pt.recovered {
		if code := broken.exit(); code == 0 {
			t.Errorf("it survives %s at %s", fault, pt.name)
		}
	}
	for _, s := range p.sent {
		out := p.answered(s)
		if pt.failed && fault == "panic" && out.Problem != nil && out.Problem.Code == protocol.CodeModelFailed {
			continue
		}
		if out.Problem != nil || out.Text != want(s.text) {
			t.Errorf("%q ended with %q, %+v", s.text, out.Text, out.Problem)
		}
	}
	took := time.Since(began)
	if fault == "stop" {
		pause(t, time.Until(began.Add(guard+time.Second)))
		broken.signal(syscall.SIGCONT)
	}
	p.send("do it after all") // what the broken one wakes up to does no harm
	if out := p.answered(p.sent[len(p.sent)-1]); out.Text != "did it after all" {
		t.Errorf("afterwards: %q, %+v", out.Text, out.Problem)
	}
	p.quiet()
	for _, s := range p.sent {
		if !(pt.failed && fault == "panic") {
			p.judgeCalls(s, pt.in == inWorker)
		}
	}
	for _, c := range members {
		if c.lives() {
			drain(c)
		}
	}
	p.judge()
	return took
}

// until sends until the fault is hit: who gets an input is the broker's choice.
func (p *place) until(hit <-chan time.Time, pt point) time.Time {
	p.t.Helper()
	say := pt.say
	if say == "" {
		say = "do"
	}
	tick, end := time.NewTicker(500*time.Millisecond), time.After(patience)
	defer tick.Stop()
	if pt.early {
		defer p.voices(pt)()
	}
	for n := 1; ; n++ {
		p.send(fmt.Sprintf("%s %d things", say, n))
		select {
		case at := <-hit:
			return at
		case <-tick.C:
		case <-end:
			p.t.Fatalf("nobody comes by %s", pt.name)
		}
	}
}

// members starts two coordinators and two workers, all well.
func (p *place) members() []*process {
	p.t.Helper()
	first, one, two := p.coordinate(""), p.work(""), p.work("")
	serving(one, two)
	second := p.coordinate("")
	second.says(up)
	return []*process{first, second, one, two}
}

// breakClient breaks a client that sends, and sends the same again.
func (p *place) breakClient(pt point, fault string) time.Duration {
	t := p.t
	members := p.members()
	args := []string{"run", "--nats", p.url, "--agent", "helper", "--id", "same", "do two things"}
	broken := start(t, p.dir, p.env, pt.arm(fault), args...)
	began := <-broken.hit(pt.name)
	if fault != "stop" && broken.exit() == 0 {
		t.Errorf("it survives %s at %s", fault, pt.name)
	}
	if log, err := p.client.Log(t.Context(), "helper", "same", 0); pt.name == "K1" && len(log) > 0 {
		t.Errorf("what was not sent is in the log: %v, %v", log, err)
	}
	again := start(t, p.dir, p.env, "", args...)
	if code := again.exit(); code != 0 || again.stdout.String() != "did two things\n" {
		t.Errorf("sent again: exit %d, %q", code, again.stdout.String())
	}
	took := time.Since(began)
	if fault == "stop" {
		broken.signal(syscall.SIGCONT)
		if code := broken.exit(); code != 0 || broken.stdout.String() != "did two things\n" {
			t.Errorf("the one that stopped: exit %d, %q", code, broken.stdout.String())
		}
	}
	p.quiet()
	drain(members...)
	s := sent{text: "do two things"}
	s.App, s.Session, s.InputID = "helper", "same", "same"
	p.judgeCalls(s, false)
	if n := len(p.effects()); n != 2 {
		t.Errorf("one input had %d effects, want 2", n)
	}
	p.judge()
	return took
}
