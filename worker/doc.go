// Package worker runs tools for the fabric: it registers what it serves, pulls calls into free slots, runs them and stores
// their results.
//
// It promises that a call whose effect class is at_most_once is started at most once, by whoever stored its claim first;
// that a message is acked only after its result is stored, or when somebody else decides the call; and that a panic, a
// stuck tool or a lost connection costs no more than the call it hits. It does not promise exactly-once execution: a read
// or idempotent tool may run again, beside itself even, always with the same idempotency key.
//
// One goroutine, the loop, owns all state: slots, pools, running calls and the handles to ack them with. Each running call
// has a goroutine that claims, runs and stores its result; each pool has one while its consumer is being opened; one sends
// the registry beats. They talk to the loop through its inbox and wait on nothing but the Bus and the Clock, so that a
// simulator can replay a worker.
package worker
