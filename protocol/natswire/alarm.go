package natswire

import "time"

// Alarm is the one timer of an actor's loop, which waits for many instants. It is not armed anew while it goes off early
// enough: it may go off with nothing to do, and an instant later than the armed one costs nothing. Clock must be set. Not
// for concurrent use.
type Alarm struct {
	Clock Clock

	fired <-chan time.Time
	off   func()
	when  time.Time
}

// Set makes the alarm go off at t, unless it goes off earlier.
func (a *Alarm) Set(t time.Time) {
	if a.fired != nil && !t.Before(a.when) {
		return
	}
	a.Stop()
	a.when = t
	a.fired, a.off = a.Clock.After(max(0, t.Sub(a.Clock.Now())))
}

// Fired delivers once when the alarm goes off; whoever hears it calls Stop. It is nil while the alarm is not set.
func (a *Alarm) Fired() <-chan time.Time { return a.fired }

// Stop releases the alarm. It may be called again, and on an alarm that was never set.
func (a *Alarm) Stop() {
	if a.off != nil {
		a.off()
	}
	a.fired, a.off = nil, nil
}
