package turn

import (
	"encoding/json"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// ExitOffer offers exit_loop, which every coordinator answers alike.
func ExitOffer(t tool.Tool) (Offer, error) {
	ready, err := invoke.New(t)
	if err != nil {
		return Offer{}, err
	}
	d := ready.Declaration()
	schema, err := invoke.CompileSchema(d.Parameters)
	if err != nil {
		return Offer{}, err
	}
	return Offer{Declaration: d, Pinned: d.Digest(), Schema: schema, Answer: func(json.RawMessage) protocol.Result {
		return recordedAnswer(protocol.Actions{Escalate: true, SkipSummarization: true})
	}}, nil
}

// recordedAnswer is the answer of a tool that only asks something of its session.
func recordedAnswer(a protocol.Actions) protocol.Result {
	return protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{}`), Actions: &a}
}
