package integration

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// wrongClock shows a time that is off by ahead, and runs rate times as fast as it should.
type wrongClock struct {
	began time.Time
	ahead time.Duration
	rate  float64
}

func (c wrongClock) Now() time.Time {
	return c.began.Add(c.ahead + time.Duration(float64(time.Since(c.began))*c.rate))
}

func (c wrongClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(time.Duration(float64(d) / c.rate))
	return t.C, func() { t.Stop() }
}

// leaping jumps an hour back at its third reading, as a clock does that is set by hand.
type leaping struct {
	wrongClock
	readings *atomic.Int32
}

func (c leaping) Now() time.Time {
	if c.readings.Add(1) > 3 {
		return c.wrongClock.Now().Add(-time.Hour)
	}
	return c.wrongClock.Now()
}

// What people have time for is counted by the broker's clock, whatever the coordinator's own says.
func TestAWrongClockNeitherHastensNorPutsOffAPersonsDeadline(t *testing.T) {
	t.Parallel()
	for name, clock := range map[string]interface {
		Now() time.Time
		After(time.Duration) (<-chan time.Time, func())
	}{
		"AnHourAhead":  wrongClock{began: time.Now(), ahead: time.Hour, rate: 1},
		"AnHourBehind": wrongClock{began: time.Now(), ahead: -time.Hour, rate: 1},
		"TwiceAsFast":  wrongClock{began: time.Now(), rate: 2},
		"LeapsBack":    leaping{wrongClock{began: time.Now(), rate: 1}, new(atomic.Int32)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			f.clock = clock
			var runs atomic.Int32
			gated := func(name string, park time.Duration) tool.Tool {
				tl, err := functiontool.New(functiontool.Config{Name: name, Description: "pays back", RequireConfirmation: true, ParkTimeout: park},
					func(_ tool.Context, in order) (map[string]any, error) {
						runs.Add(1)
						return map[string]any{"paid": in.Order}, nil
					})
				if err != nil {
					t.Fatal(err)
				}
				return tl
			}
			const patient, hasty = 30 * time.Minute, 2 * time.Second
			f.coordinate(newAgent(t, "app", script(t, refundScript), "refund"), newAgent(t, "brief", script(t, briefScript), "brief"))
			f.work(gated("refund", patient), gated("brief", hasty))

			r := f.send(t.Context(), "app", "", "pay order 7 back")
			asked := f.untilParked("app", r.Session)
			q := asked.Event.Turn.Calls[0].Confirmation
			if left := time.UnixMilli(q.Expires).Sub(asked.Time); left < patient-time.Minute || left > patient+time.Minute {
				t.Errorf("the question expires %v after it was stored, want %v", left, patient)
			}
			if got := f.decide("app", r.Session, q.ID, "ann", `{"confirmed":true}`); got.Code != "" {
				t.Fatalf("an approval in time is told %s: %s", got.Code, got.Message)
			}
			contains(t, "the answer", f.wait(r).Text, "finished")

			late := f.send(t.Context(), "brief", "", "pay order 7 back")
			contains(t, "the answer", f.wait(late).Text, "finished")
			var end protocol.Answer
			var ended, expires time.Time
			for _, e := range f.log("brief", late.Session) {
				if e.Event.Turn != nil && len(e.Event.Turn.Calls) > 0 {
					expires = time.UnixMilli(e.Event.Turn.Calls[0].Confirmation.Expires)
				}
				if len(e.Event.Answers) > 0 {
					end, ended = e.Event.Answers[0], e.Time
				}
			}
			if end.Outcome != protocol.OutcomeExpired || ended.Before(expires) {
				t.Errorf("the call ended as %s at %v, its question expires at %v", end.Outcome, ended, expires)
			}
			if n := runs.Load(); n != 1 {
				t.Errorf("%d effects, want the approved one", n)
			}
		})
	}
}

const briefScript = `
turns:
  - {parts: [{functionCall: {name: brief, id: r, args: {order: "7"}}}], finishReason: STOP}
  - {parts: [{text: finished}], finishReason: STOP}
`
