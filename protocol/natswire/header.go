package natswire

import (
	"strconv"
	"strings"
	"time"
)

// Headers that Toolfabric writes. Lower case, as W3C Trace Context asks; the broker's own are spelled by this package only.
const (
	HeaderTraceparent = "traceparent"
	HeaderTracestate  = "tracestate"
)

// Get reads a header without case; empty when it is missing. Case-sensitive reads lose the traces of libraries that write
// Traceparent.
func (h Header) Get(key string) string {
	if v, ok := h[key]; ok {
		return v
	}
	for k, v := range h {
		if len(k) == len(key) && strings.EqualFold(k, key) {
			return v
		}
	}
	return ""
}

// Set writes a header in lower case. With Get and Keys it makes Header an OpenTelemetry carrier.
func (h Header) Set(key, value string) { h[strings.ToLower(key)] = value }

// Keys lists the headers.
func (h Header) Keys() []string {
	keys := make([]string, 0, len(h))
	for k := range h {
		keys = append(keys, k)
	}
	return keys
}

// StoredSeq is the stream sequence that a republished message (live, done) was stored with; 0 on any other message.
func StoredSeq(h Header) uint64 {
	seq, err := strconv.ParseUint(h["Nats-Sequence"], 10, 64)
	if err != nil {
		return 0
	}
	return seq
}

// Republished is a message as its stream republished it: with the subject it was heard on, and the sequence of the message
// that stood on its own subject before it, 0 for none. ok is false for a message that does not say all of that.
func Republished(m Msg) (s Stored, after uint64, ok bool) {
	s = Stored{Subject: m.Subject, Header: m.Header, Data: m.Data, Seq: StoredSeq(m.Header)}
	after, err := strconv.ParseUint(m.Header["Nats-Last-Sequence"], 10, 64)
	if err != nil {
		return s, 0, false
	}
	s.Time, err = time.Parse(time.RFC3339Nano, m.Header["Nats-Time-Stamp"])
	return s, after, err == nil && s.Seq > after
}
