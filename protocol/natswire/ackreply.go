package natswire

import (
	"strconv"
	"strings"
	"time"
)

// ackReply is what the reply subject of a delivery tells.
type ackReply struct {
	attempt int
	seq     uint64
	time    time.Time
}

// parseAckReply reads the reply subject of a delivery. Two forms are in use, see ADR-15 of the NATS architecture:
//
//	$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
//	$JS.ACK.<domain>.<account hash>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>[.<random>]
//
// It returns false for any other subject.
func parseAckReply(subject string) (ackReply, bool) {
	rest, ok := strings.CutPrefix(subject, "$JS.ACK.")
	if !ok {
		return ackReply{}, false
	}
	var tokens [11]string
	n := 0
	for token := range strings.SplitSeq(rest, ".") {
		if n == len(tokens) { // a later server may add tokens at the end
			break
		}
		tokens[n] = token
		n++
	}
	var numbers []string
	switch {
	case n == 7:
		numbers = tokens[2:7]
	case n >= 9:
		numbers = tokens[4:9]
	default:
		return ackReply{}, false
	}
	var values [5]uint64
	for i, s := range numbers {
		v, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			return ackReply{}, false
		}
		values[i] = v
	}
	if values[0] == 0 || values[0] > 1<<31-1 || values[1] == 0 {
		return ackReply{}, false
	}
	return ackReply{attempt: int(values[0]), seq: values[1], time: time.Unix(0, int64(values[3])).UTC()}, true
}
