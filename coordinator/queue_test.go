package coordinator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

// slow is a declaration of a tool whose calls park their session.
func slow(name string, effect protocol.Effect, queue time.Duration) protocol.Declaration {
	d := declaration(name, "Takes hours.")
	d.Effect, d.Timeout, d.QueueTimeout = effect, (2 * time.Hour).Milliseconds(), queue.Milliseconds()
	return d
}

// A parked session tells that no worker took its call when the time for that is over, not when the call's whole time is.
func TestAParkedCallThatNoWorkerTakes(t *testing.T) {
	for _, effect := range []protocol.Effect{protocol.EffectRead, protocol.EffectAtMostOnce} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprint(effect, " killed ", killed), func(t *testing.T) {
				inBubble(t, func(t *testing.T, f *fabric) {
					o := caller("slow")
					cfg := coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools("slow")})}}
					f.start("c1", cfg)
					f.beat("w", slow("slow", effect, 5*time.Minute))
					f.pass(time.Second)
					f.say("helper", "s1", "hi")
					if stop := f.rests("helper", "s1", time.Minute); stop.Kind != protocol.StopParked {
						t.Fatalf("it stopped as %s", stop.Kind)
					}
					if killed { // another process knows what the log says
						f.w.Kill("c1")
						f.start("c2", cfg)
					}
					took := f.until(10*time.Minute, "the end", func() bool { return f.done("helper", "s1") })
					if took < 4*time.Minute || took > 6*time.Minute {
						t.Errorf("it was told after %s, want about 5 minutes", took)
					}
					want := []string{`slow{"error":"no worker took the call in time; it was not executed"}`}
					if got := o.told(t); !slices.Equal(got, want) {
						t.Errorf("the model is told %v, want %v", got, want)
					}
					f.pass(time.Minute)
					if n := len(f.w.Messages(f.names.Calls())) + len(f.w.Messages(f.names.Timers())); n != 0 {
						t.Errorf("%d messages are left", n)
					}
				})
			})
		}
	}
}

// A session whose calls were taken is looked at once for each time that was theirs, and then left until they end.
func TestAParkedCallThatAWorkerHas(t *testing.T) {
	for _, effect := range []protocol.Effect{protocol.EffectRead, protocol.EffectIdempotent} {
		inBubble(t, func(t *testing.T, f *fabric) {
			var names []string
			for i := range 8 { // more than adoptions without progress before a quarantine
				names = append(names, fmt.Sprint("slow", i))
			}
			o := caller(names...)
			f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools(names...)})}})
			over := make(chan struct{})
			end := sync.OnceFunc(func() { close(over) })
			defer end()
			for i, name := range names {
				f.pool(slow(name, effect, time.Duration(i+2)*time.Minute), func(protocol.Envelope) protocol.Result {
					<-over
					return object(`{"n":1}`)
				})
			}
			f.say("helper", "s1", "hi")
			f.rests("helper", "s1", time.Minute)
			f.pass(time.Hour)
			if stop := f.stopped("helper", "s1"); stop == nil || stop.Kind != protocol.StopParked {
				t.Fatalf("it is not parked: %+v %v", stop, f.answers("helper", "s1"))
			}
			if n := len(f.adoptions("helper", "s1")); n != 1+len(names) {
				t.Errorf("%d adoptions, want one for each call and the first", n)
			}
			end()
			f.until(time.Minute, "the end", func() bool { return f.done("helper", "s1") })
			if got := strings.Join(o.told(t), " "); strings.Count(got, `{"n":1}`) != len(names) {
				t.Errorf("the model is told %s", got)
			}
		})
	}
}
