// Package fold is the pure core of a session: no clock, no broker, no goroutine, no randomness.
//
// Fold reads one event of the log into the state, and replay is a loop of it. Step is live: it takes what the outside says
// and may propose one event, which counts only once it is appended and folded. Pending lists what the log allows and does
// not show done; whoever drives the session carries that list out, be it the owner or one who adopted it.
//
// A State is consumed by Fold and Step: use the one they return. The guarded invariant: two replays of one log yield equal
// states, and a session's calls end exactly once each.
package fold
