package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
)

// What a session that waits costs is counted here; the times of a test machine prove nothing.
func TestSessionsThatWaitHoldNothingHere(t *testing.T) {
	const waiting = 300
	var progress bytes.Buffer
	r, err := MeasurePark(t.Context(), ParkConfig{
		Config: Config{Dir: t.TempDir(), Command: self, Progress: &progress}, Sessions: waiting, InFlight: 32, Replies: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 4 || r.Steps[0].Parked != 0 || r.Steps[3].Parked != waiting || r.Rate <= 0 {
		t.Fatalf("%+v", r)
	}
	first, last := r.Steps[0], r.Steps[3]
	if last.Goroutines > first.Goroutines+waiting/10 {
		t.Errorf("%d goroutines before, %d while %d sessions wait", first.Goroutines, last.Goroutines, waiting)
	}
	// A session that is left behind holds its state, its history and its inbox: some 3 KiB.
	if grown := last.Heap - first.Heap; grown > waiting*2048 {
		t.Errorf("%d sessions that wait hold %d bytes", waiting, grown)
	}
	stored := 0.0
	for _, s := range r.Streams {
		if s.Messages != math.Trunc(s.Messages) && s.Messages-math.Trunc(s.Messages) > 0.1 {
			t.Errorf("%s holds %.2f messages of each", s.Stream, s.Messages)
		}
		stored += math.Round(s.Messages)
	}
	if len(r.Streams) != 3 || stored != 4 { // two events, a record, a timer
		t.Errorf("each session that waits has stored %+v", r.Streams)
	}
	if r.FirstPage.P50 <= 0 || r.Find.P50 <= 0 || len(r.Replies) != 3 {
		t.Fatalf("%+v", r)
	}
	for _, reply := range r.Replies {
		if reply.P50 <= 0 || reply.P99 < reply.P50 || reply.Ratio <= 0 {
			t.Errorf("%+v", reply)
		}
	}
	var table bytes.Buffer
	if err := r.Print(&table); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"bytes a session", "KV_benchpark_PARK", "one by its id", NameApproved, NameInSession, NameCalled} {
		if !bytes.Contains(table.Bytes(), []byte(want)) {
			t.Errorf("%q is not printed:\n%s", want, &table)
		}
	}
	data, err := json.Marshal(r)
	if err != nil || !bytes.Contains(data, []byte(`"server_heap_bytes"`)) || !bytes.Contains(data, []byte(`"nats_server"`)) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestParkingRefusesNonsense(t *testing.T) {
	for name, cfg := range map[string]ParkConfig{
		"no server":       {Config: Config{Dir: "."}},
		"negative number": {Config: Config{Dir: ".", Command: self}, Sessions: -1},
	} {
		if _, err := MeasurePark(t.Context(), cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
