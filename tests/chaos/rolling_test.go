package chaos

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

const (
	speakers = 4                // who talk at once, each to one session after the other
	calm     = 15 * time.Second // of load before anything is restarted
	addedP99 = 2 * time.Second
)

// TestRollingRestartIsHardlyFelt restarts two coordinators and two workers one by one under load, as a deployment does.
func TestRollingRestartIsHardlyFelt(t *testing.T) {
	skipShort(t)
	if !*all {
		t.Skip("make chaos does it")
	}
	s := natstest.Start(t)
	p := newPlace(t, s, serveModel(t), "rolling", longTimes)
	members := p.members()
	load := p.speak()
	pause(t, calm)
	began := time.Now()
	for i, old := range members {
		drain(old)
		if i < 2 {
			members[i] = p.coordinate("")
			members[i].says(up)
		} else {
			members[i] = p.work("")
			serving(members[i])
		}
	}
	took := time.Since(began)
	before, during := load.end(t, began)
	t.Logf("rolling restart of %d processes in %.1fs: p99 of a run %.0f ms over %d runs, %.0f ms over %d before; p50 %.0f ms, %.0f ms before",
		len(members), took.Seconds(), ms(p99(during)), len(during), ms(p99(before)), len(before), ms(p50(during)), ms(p50(before)))
	if added := p99(during) - p99(before); added > addedP99 {
		t.Errorf("the restart adds %v to the p99, more than %v", added, addedP99)
	}
	p.allWell()
	drain(members...)
	p.judge()
}

// spoken is a run with how long it took.
type spoken struct {
	sent
	began time.Time
	took  time.Duration
}

// load is the speakers.
type load struct {
	p       *place
	stop    chan struct{}
	talking sync.WaitGroup

	mu   sync.Mutex
	runs []spoken
}

func (p *place) speak() *load {
	l := &load{p: p, stop: make(chan struct{})}
	for who := range speakers {
		l.talking.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				if !l.run(fmt.Sprintf("do %d of %d", n, who)) {
					return
				}
			}
		})
	}
	return l
}

func (l *load) run(text string) bool {
	began, ctx := time.Now(), l.p.t.Context()
	r, err := l.p.client.Send(ctx, "helper", "", client.Text(text))
	if err == nil {
		_, err = l.p.client.Wait(ctx, r.App, r.Session, r.InputID)
	}
	if err != nil {
		l.p.t.Errorf("%s: %v", text, err)
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, spoken{sent{r, text}, began, time.Since(began)})
	return true
}

// end stops the load and tells how long the runs took that ended before an instant, and the others.
func (l *load) end(t *testing.T, at time.Time) (before, after []time.Duration) {
	t.Helper()
	close(l.stop)
	l.talking.Wait()
	for _, r := range l.runs {
		l.p.sent = append(l.p.sent, r.sent)
		if r.began.Add(r.took).Before(at) {
			before = append(before, r.took)
		} else {
			after = append(after, r.took)
		}
	}
	if len(before) == 0 || len(after) == 0 {
		t.Fatalf("%d runs before and %d after", len(before), len(after))
	}
	slices.Sort(before)
	slices.Sort(after)
	return before, after
}

func p99(sorted []time.Duration) time.Duration { return sorted[(len(sorted)-1)*99/100] }
func p50(sorted []time.Duration) time.Duration { return sorted[(len(sorted)-1)/2] }
func ms(d time.Duration) float64               { return float64(d) / float64(time.Millisecond) }
