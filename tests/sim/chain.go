package sim

import (
	"strings"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
)

// chain looks at who wrote: after a stop only an adoption goes on, or the refusals of a closed session, and no event
// stands twice.
func (c *checker) chain() {
	for _, j := range c.journals() {
		ids := map[string]uint64{}
		owned, closed := false, false
		for _, ev := range j.events {
			if first, ok := ids[ev.ID]; ok && ev.ID != "" {
				c.add("I1", "log %s: event %s stands at %d and %d", j.name, ev.ID, first, ev.seq)
			}
			ids[ev.ID] = ev.seq
			if ev.Adopt != nil {
				owned = true
			} else if !owned && !closed {
				c.add("I1", "log %s: event %d is written by nobody who adopted the session", j.name, ev.seq)
			}
			if ev.Stop != nil {
				owned, closed = false, ev.Stop.Kind == protocol.StopDeleted || ev.Stop.Kind == protocol.StopQuarantined
			}
		}
	}
}

// epochs only grow, by one with each adoption.
func (c *checker) epochs() {
	for _, j := range c.journals() {
		var epoch uint64
		for _, ev := range j.events {
			want := epoch
			if ev.Adopt != nil {
				want++
			}
			if ev.Epoch != want {
				c.add("I2", "log %s: event %d has epoch %d after %d", j.name, ev.seq, ev.Epoch, epoch)
			}
			epoch = max(epoch, ev.Epoch)
		}
	}
}

// replays folds each log from its start and from every place at which a snapshot may stand.
func (c *checker) replays() {
	for _, j := range c.journals() {
		app, session, _ := strings.Cut(j.name, ".")
		seqs, events := make([]uint64, len(j.events)), make([]protocol.Event, len(j.events))
		for i, ev := range j.events {
			seqs[i], events[i] = ev.seq, ev.Event
		}
		if _, err := coordinator.Replay(app, session, seqs, events); err != nil {
			c.add("I3", "log %s: %v", j.name, err)
		}
	}
}

// limits counts the model's turns of each run, and the adoptions in a row that led to nothing.
func (c *checker) limits() {
	for _, j := range c.journals() {
		turns, barren := 0, 0
		for _, ev := range j.events {
			if ev.Turn != nil && len(ev.Turn.Content) > 0 {
				turns++
			}
			if turns == c.h.ModelCalls+1 {
				c.add("I21", "log %s: event %d is turn %d of its run, the limit is %d", j.name, ev.seq, turns, c.h.ModelCalls)
			}
			if ev.Stop != nil && ev.Stop.Kind != protocol.StopDrained && ev.Stop.Kind != protocol.StopParked {
				turns = 0
			}
			if ev.Adopt != nil {
				barren++
			}
			if len(ev.Inputs)+len(ev.Answers) > 0 || ev.Turn != nil || ev.Stop != nil {
				barren = 0
			}
			if barren == maxBarren+1 {
				c.add("I23", "log %s: event %d is adoption %d in a row that led to nothing", j.name, ev.seq, barren)
			}
		}
	}
}

// maxBarren is how many adoptions in a row may lead to nothing: the next one quarantines the session.
const maxBarren = 5

// overtime wants a run that was ended for its time to have taken it, parked time left out.
func (c *checker) overtime() {
	for _, j := range c.journals() {
		var began, rested, parked int64
		for _, ev := range j.events {
			if ev.Adopt != nil && parked != 0 {
				rested += ev.At - parked
				parked = 0
			}
			if began == 0 {
				began = ev.At
			}
			if ev.Stop == nil {
				continue
			}
			if p := ev.Stop.Problem; p != nil && strings.Contains(p.Message, "has taken longer") && ev.At-began-rested < c.h.WallTime.Milliseconds() {
				c.add("I21", "log %s: event %d ends the run for its time after %d ms", j.name, ev.seq, ev.At-began-rested)
			}
			switch ev.Stop.Kind {
			case protocol.StopParked:
				parked = ev.At
			case protocol.StopDrained:
			default:
				began, rested = 0, 0
			}
		}
	}
}
