// Package bench measures Toolfabric against what it stands on, in one run on one machine: a core NATS request, the raw
// durable round trip written directly on nats.go, and whatever subjects the caller adds, which is ours. Rounds alternate
// between the subjects, figures are medians over rounds, and a ratio is the median of the ratios within each round, so
// that a machine that slows down half-way changes all of them alike.
//
// It does not tune: the raw round trip has the same durability as ours and everything that makes it fast without giving
// that up. It sees neither our Bus nor our streams.
package bench
