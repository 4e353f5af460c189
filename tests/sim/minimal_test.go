package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/tests/sim"
)

// minimal drops from a plan that fails what it fails without: troubles and sayings, one after the other, then kinds of
// faults, until nothing more can go. It gives up improving after a minute.
func minimal(t *testing.T, p plan) plan {
	until := time.Now().Add(time.Minute)
	fails := func(q plan) bool {
		return time.Now().Before(until) && len(first(storm(t, q))) > 0
	}
	for again := true; again; {
		again = false
		for i := len(p.Troubles) - 1; i >= 0; i-- {
			q := p
			q.Troubles = slices.Delete(slices.Clone(p.Troubles), i, i+1)
			if fails(q) {
				p, again = q, true
			}
		}
		for i := len(p.Sayings) - 1; i >= 0; i-- {
			q := p
			q.Sayings = slices.Delete(slices.Clone(p.Sayings), i, i+1)
			if fails(q) {
				p, again = q, true
			}
		}
		for i := len(p.Words) - 1; i >= 0 && len(p.Words) > 1; i-- {
			q := p
			q.Words = slices.Delete(slices.Clone(p.Words), i, i+1)
			if fails(q) {
				p, again = q, true
			}
		}
		if p.Skew != nil {
			q := p
			q.Skew = nil
			if fails(q) {
				p, again = q, true
			}
		}
		for _, drop := range faultKinds {
			q := p
			if *drop(&q.Faults) > 0 {
				*drop(&q.Faults) = 0
				if fails(q) {
					p, again = q, true
				}
			}
		}
	}
	return p
}

var faultKinds = []func(*sim.Faults) *float64{
	func(f *sim.Faults) *float64 { return &f.LostAck },
	func(f *sim.Faults) *float64 { return &f.Late },
	func(f *sim.Faults) *float64 { return &f.Fail },
	func(f *sim.Faults) *float64 { return &f.Timeout },
	func(f *sim.Faults) *float64 { return &f.Drop },
	func(f *sim.Faults) *float64 { return &f.Delay },
	func(f *sim.Faults) *float64 { return &f.Twin },
	func(f *sim.Faults) *float64 { return &f.Stale },
	func(f *sim.Faults) *float64 { return &f.Forget },
}
