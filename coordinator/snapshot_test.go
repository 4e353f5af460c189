package coordinator_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

func TestAnotherCoordinatorContinuesFromASnapshot(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		llm := says("hello", 0)
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: llm})}
		_, stop := f.start("c1", coordinator.Config{Agents: agents})
		const messages = 120
		for i := range messages {
			f.say("helper", "s1", strconv.Itoa(i))
			f.rests("helper", "s1", time.Second)
		}
		stop()
		snapshots := func() (at []int) {
			for i, e := range f.log("helper", "s1") {
				if e.State != nil {
					at = append(at, i)
				}
			}
			return at
		}
		at := snapshots()
		if len(at) != 2 || at[0] < fold.SnapshotGap || at[0] > fold.SnapshotGap+4 || at[1]-at[0] < fold.SnapshotGap || at[1]-at[0] > fold.SnapshotGap+4 {
			t.Fatalf("snapshots are the events %v, want one about every %d", at, fold.SnapshotGap)
		}
		before := f.log("helper", "s1")
		newest := before[at[1]].seq

		f.start("c2", coordinator.Config{Agents: agents})
		f.repeat("helper", "s1", "in-1", "0") // older than the snapshots
		f.pass(time.Second)
		if n := len(f.log("helper", "s1")); n != len(before) {
			t.Errorf("an input of before the snapshot was taken again: %d events, then %d", len(before), n)
		}
		f.say("helper", "s1", "the last")
		f.pass(time.Second)
		for _, e := range f.log("helper", "s1")[len(before):] {
			if e.Snapshot != newest {
				t.Errorf("event %d names the snapshot %d, want %d", e.seq, e.Snapshot, newest)
			}
		}
		n, req := llm.requests()
		if n != messages+1 || len(req.Contents) != 2*messages+1 {
			t.Errorf("request %d shows %d contents, want the whole conversation", n, len(req.Contents))
		}
	})
}
