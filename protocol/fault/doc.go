// Package fault holds the places where tests break Toolfabric on purpose: mutants, which take one guarantee out of the
// code, and points, where a process dies, stops, panics or hesitates.
//
// A plain build has neither: Mutant is the constant false and Point does nothing, both are inlined, and what hangs on
// them is not compiled. Build tag mutants lets Use switch one mutant on, by name, or TF_MUTANT in the environment; tests/sim
// shows that each breaks an invariant, which shows that its checks are able to fail.
//
// The points are named for the crashes that a fabric must survive:
//
//	K1   client, before it publishes an input
//	K2   client, after the publish of an input, before its caller is told
//	K3   coordinator, with a delivered input, before it reads the log
//	K4   coordinator, after it set a guard, before it appends the adoption
//	K5   coordinator, before it sends an append
//	K6   coordinator, after an append was sent, before it acts on the ack
//	K7   coordinator, after a turn is in the log, before a call of it is published
//	K8   coordinator, after a call is published, before it notes that
//	K9   coordinator, before it asks the model
//	K10  coordinator, with the model's whole answer, before it is appended
//	K11  coordinator, with a piece of the model's answer
//	K12  worker, with a delivered call, before its claim
//	K13  worker, after the claim, before the effect
//	K14  worker, after the effect, before the result is published
//	K15  worker, after the result was sent, before it acts on the ack
//	K16  worker, after the result is stored, before it acks the call
//	K17  coordinator, before it appends a stop that parks
//	K18  coordinator, after such a stop is in the log, before its calls are listed
//	K19  coordinator, after the timer of a parked session is set, before its guard is removed
//	K20  coordinator, before it removes the guard of a session that has stopped
//	K21  coordinator, after it acked a decision or an answer that woke a session
//	K24  coordinator, after a body is in the object store, before an event names it
//	K25  coordinator, in the middle of its walk over the logs, or of its look at the registry
//
// Build tag faults lets TF_FAULT in the environment say what happens there: NAME[@N]=kill|stop|panic|delay:DURATION,
// separated by commas. tests/chaos does that to real processes.
package fault
