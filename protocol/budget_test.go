//go:build !race

package protocol

import (
	"encoding/json"
	"testing"
)

// A call on the wire, written and read strictly.
func TestEnvelopeStaysInItsAllocationBudget(t *testing.T) {
	const writing, reading = 2, 8
	env := Envelope{V: Version, App: "assistant", User: "u", Session: "s1", Call: "c1", Tool: "hash", Digest: "d",
		Effect: EffectRead, Args: json.RawMessage(`{"text":"hello","times":3}`), AnswersTo: MailboxResults}
	data, err := Encode(&env)
	if err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(200, func() { _, err = Encode(&env) }); got > writing || err != nil {
		t.Errorf("%.0f allocations to write a call, the budget is %d; %v", got, writing, err)
	}
	if got := testing.AllocsPerRun(200, func() { _, err = DecodeEnvelope(data) }); got > reading || err != nil {
		t.Errorf("%.0f allocations to read a call, the budget is %d; %v", got, reading, err)
	}
}

func TestTreeStaysInItsAllocationBudget(t *testing.T) {
	doc := []byte(`{"text":"to be or not to be","n":12,"list":[true,"a"]}`)
	if got := testing.AllocsPerRun(100, func() { _, _ = Tree(doc) }); got > 12 {
		t.Errorf("%.0f allocations, the budget is 12", got)
	}
}
