// Package natswire is the protocol on NATS: connecting, the Bus in the broker's own words, every subject, stream,
// consumer, bucket and header that Toolfabric uses, and claim, answer, append and arm as functions over the Bus. No other
// package spells a subject or a header, or sees a broker error: they come out as *protocol.Error.
package natswire
