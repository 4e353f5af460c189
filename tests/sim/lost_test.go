package sim_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol/natswire"
)

var lostSeeds = flag.Int("lost", 6, "with how many seeds PARK and TIMERS are lost")

// lossOf is the storm of a seed in which calls wait longer than a walk over the logs takes, PARK is lost, and in every
// third seed TIMERS too. What is left unsaid shows whether the waits still end.
func lossOf(seed uint64, n natswire.Names) plan {
	p := planOf(seed, n)
	r := rand.New(rand.NewPCG(seed, 9))
	p.Safety, p.Park, p.Rush, p.Skew = false, walked+8*time.Minute, false, nil
	p.Words = []string{"yes", "late", "edge"} // who has another word says nothing
	for i := range p.Sayings {
		if s := &p.Sayings[i]; s.Kind == "message" && s.Text != "doom" {
			s.Text = waitingTexts[r.IntN(len(waitingTexts))]
		}
	}
	streams := []string{n.ParkStream()}
	if seed%3 == 0 {
		streams = append(streams, n.Timers())
	}
	for _, stream := range streams {
		p.Troubles = append(p.Troubles, trouble{At: time.Duration(5+r.IntN(35)) * time.Second, Kind: "wipe", On: stream})
	}
	p.Troubles = slices.DeleteFunc(p.Troubles, func(t trouble) bool { return t.Kind == "kill" && t.For == time.Hour })
	return p
}

func TestWhatIsLostIsBroughtBackByTheWalk(t *testing.T) {
	for i := range uint64(*lostSeeds) {
		p := lossOf(*firstOne+i, names(t))
		if found, trace := storm(t, p); len(found) > 0 {
			report(t, p, found, trace)
		}
	}
}
