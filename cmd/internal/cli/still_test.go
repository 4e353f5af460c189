package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

func TestSilentCallsAreSpokenOf(t *testing.T) {
	serving := []protocol.Registration{{Worker: "worker-of-long-name"}}
	for name, c := range map[string]struct {
		pool  client.Pool
		known bool
		want  string
	}{
		"it runs":        {client.Pool{Workers: serving, InFlight: 1}, true, "… slow is still running 3.0s, by worker-o\n"},
		"it waits":       {client.Pool{Workers: append(serving, serving...), Pending: 1}, true, "… slow still waits for a free worker 3.0s\n"},
		"nobody serves":  {client.Pool{Pending: 1}, true, "… no worker serves slow now; waiting up to 30s for one 3.0s\n"},
		"nobody can say": {client.Pool{}, false, "… slow is still running 3.0s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p, screen := watched(true)
			now := time.UnixMilli(5000)
			p.tellStill(&running{call: protocol.Call{ID: "c1", Tool: "slow"}, since: now.Add(-3 * time.Second)}, c.pool, c.known, 30*time.Second, now)
			if got := screen.String(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestACoordinatorsWordIsOfNoWorker(t *testing.T) {
	p, screen := watched(true)
	p.calls["c1"] = &running{call: protocol.Call{ID: "c1", Tool: "slow"}}
	p.answered("c1", protocol.Result{Outcome: protocol.OutcomeExpired, Value: protocol.ErrorValue("not executed"), Worker: "coordinator-1"})
	if got, want := screen.String(), "< slow expired: not executed \n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestACallThatWaitsForAPersonIsNotStillRunning(t *testing.T) {
	p, screen := watched(true)
	if err := p.entry(says("", protocol.Call{ID: "c1", Tool: "pay", Args: json.RawMessage(`{}`), Verdict: protocol.VerdictAsk})); err != nil {
		t.Fatal(err)
	}
	p.parked, p.rests = &client.Waiting{Calls: []client.Parked{{Parked: protocol.Parked{Call: "c1"}}}}, true
	p.still(t.Context(), nil, time.Now().Add(time.Hour)) // without a client: nobody is asked about its pool
	if got, want := screen.String(), "> pay {}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
