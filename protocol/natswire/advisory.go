package natswire

import (
	"encoding/json"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// Advisory is what the broker says about a call it gave up. Advisories are core messages that the stream of dead letters
// catches: one may be lost.
type Advisory struct {
	Kind       string // AdvisoryMaxDeliveries or AdvisoryTerminated
	Consumer   string // the durable, which is the tool
	Seq        uint64 // of the call in CALLS; after a termination it is gone
	Deliveries int
	Reason     string // of a termination
}

// Kinds of advisories.
const (
	AdvisoryMaxDeliveries = "MAX_DELIVERIES" // delivered as often as allowed and never acked: it lies in the queue for ever
	AdvisoryTerminated    = "MSG_TERMINATED" // a worker refused it for good
)

const advisoryPrefix = "$JS.EVENT.ADVISORY.CONSUMER."

// AdvisorySubject is where the broker tells of the calls of a tool; "*" stands for all tools.
func (n Names) AdvisorySubject(kind, tool string) string {
	return advisoryPrefix + join(kind, n.Calls(), tool)
}

// ParseAdvisory reads a message of the dead letters as an advisory. It returns code bad_message for any other.
func (n Names) ParseAdvisory(subject string, data []byte) (Advisory, error) {
	rest, ok := strings.CutPrefix(subject, advisoryPrefix)
	t := strings.Split(rest, ".")
	if !ok || len(t) != 3 || t[1] != n.Calls() || t[0] != AdvisoryMaxDeliveries && t[0] != AdvisoryTerminated {
		return Advisory{}, protocol.Errorf(protocol.CodeBadMessage, "%q is not the subject of an advisory", subject)
	}
	var body struct {
		Seq        uint64 `json:"stream_seq"`
		Deliveries int    `json:"deliveries"`
		Reason     string `json:"reason"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return Advisory{}, protocol.Wrap(err, protocol.CodeBadMessage, "the advisory on %s is not JSON", subject)
	}
	return Advisory{Kind: t[0], Consumer: t[2], Seq: body.Seq, Deliveries: body.Deliveries, Reason: body.Reason}, nil
}
