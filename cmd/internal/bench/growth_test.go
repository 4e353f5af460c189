package bench

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Times of a test machine prove nothing; what must not grow is counted here and in coordinator/internal/fold.
func TestSessionsAtRestLeaveNothingBehind(t *testing.T) {
	const idle = 300
	g, err := MeasureGrowth(t.Context(), GrowthConfig{
		Config: Config{Dir: t.TempDir(), Command: self, Rounds: 1}, Idle: idle, Short: 20, Long: 250, Measured: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if g.Idle.GoroutinesAfter != g.Idle.GoroutinesBefore {
		t.Errorf("%d goroutines before, %d after %d sessions", g.Idle.GoroutinesBefore, g.Idle.GoroutinesAfter, idle)
	}
	// A session that is left behind holds its state, its history and its inbox: some 3 KiB.
	if grown := g.Idle.HeapAfter - g.Idle.HeapBefore; grown > idle*1024+2*g.Idle.Noise {
		t.Errorf("%d sessions at rest hold %d bytes; the noise is %d", idle, grown, g.Idle.Noise)
	}
	if len(g.Costs) != 2 || g.Costs[0].Subject != NameTurn || g.Costs[1].Subject != NameRun {
		t.Fatalf("%+v", g.Costs)
	}
	for _, c := range g.Costs {
		if c.Short <= 0 || c.Long <= 0 || c.Ratio <= 0 || c.BuildShort <= 0 || c.BuildLong <= 0 {
			t.Errorf("%+v", c)
		}
	}
	var table bytes.Buffer
	if err := g.Print(&table); err != nil || bytes.Count(table.Bytes(), []byte("\n")) != 10 {
		t.Errorf("%v\n%s", err, &table)
	}
	data, err := json.Marshal(g)
	if err != nil || !bytes.Contains(data, []byte(`"bytes_per_session"`)) || !bytes.Contains(data, []byte(`"nats_server"`)) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestGrowthRefusesNonsense(t *testing.T) {
	for name, cfg := range map[string]GrowthConfig{
		"no server":       {Config: Config{Dir: "."}},
		"negative number": {Config: Config{Dir: ".", Command: self}, Idle: -1},
	} {
		if _, err := MeasureGrowth(t.Context(), cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
