package fold

import (
	"strconv"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

// An input that guards an adoption is in INPUT until that stops, and comes once more when its ack is lost.
func TestAGuardIsRememberedPastItsAdoption(t *testing.T) {
	l := newLog(t)
	guard := message("guard")
	guard.Input.Seq = 7
	if ev := l.say(Adopt{Coordinator: "c", Adoption: "a1", Guard: 7, Arrivals: []Arrival{guard}}); ev.Adopt.Guard != 7 {
		t.Fatalf("the event names guard %d, want 7", ev.Adopt.Guard)
	}
	for i := range 2 * MaxSeen {
		l.say(Arrive{Arrivals: []Arrival{message("in" + strconv.Itoa(i))}})
	}
	l.modelled(asked())
	if l.state.Stopped != protocol.StopDone {
		t.Fatalf("the run ended as %q", l.state.Stopped)
	}
	l.adopt(message("next"))
	for i := range MaxSeen / 2 {
		l.say(Arrive{Arrivals: []Arrival{message("more" + strconv.Itoa(i))}})
	}
	if !l.state.Seen.Has("guard") {
		t.Error("it would be folded again")
	}
}

func TestAnAdoptionNamesOnlyAGuardThatItFolds(t *testing.T) {
	l := newLog(t)
	l.adopt(message("first"))
	l.modelled(asked())
	again := message("first")
	again.Input.Seq = 9
	if ev := l.say(Adopt{Coordinator: "c", Adoption: "a2", Guard: 9, Arrivals: []Arrival{again, message("second")}}); ev.Adopt.Guard != 0 {
		t.Errorf("the event names guard %d, which it does not fold", ev.Adopt.Guard)
	}
}
