//go:build !race

package natswire_test

import (
	"testing"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// A publish with its ack. What the server in this process allocates for it is counted with it.
func TestPublishStaysInItsAllocationBudget(t *testing.T) {
	const budget = 25
	conn := natstest.Start(t).Connect(t, "")
	m := natswire.Msg{Subject: conn.Names().CallSubject("echo"), Header: natswire.Header{"traceparent": "t"}, Data: make([]byte, 256)}
	got := testing.AllocsPerRun(300, func() {
		if _, err := conn.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	})
	if got > budget {
		t.Errorf("%.0f allocations a publish, the budget is %d", got, budget)
	} else {
		t.Logf("%.0f allocations a publish", got)
	}
}
