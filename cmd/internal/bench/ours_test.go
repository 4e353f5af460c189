package bench

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkFabric drives each subject alone, with 64 calls in flight, for profiles of the fabric without its yardsticks.
func BenchmarkFabric(b *testing.B) {
	for _, o := range ours {
		b.Run(o.name, func(b *testing.B) {
			broker, err := StartEmbedded(ServeConfig{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer broker.Close()
			s, done, err := o.open(b.Context(), broker)
			if err != nil {
				b.Fatal(err)
			}
			defer done()
			b.ReportAllocs()
			b.ResetTimer()
			before := ownCPU()
			if _, err := s.Run(b.Context(), 64, b.N); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64((ownCPU()-before).Microseconds())/float64(b.N), "cpu-us/op")
		})
	}
}

func TestFabricIsMeasuredInBothPlaces(t *testing.T) {
	openers, err := Choose(Choices())
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Config{
		Dir: t.TempDir(), Command: self, Rounds: 1, SingleCalls: 3, Calls: 13, InFlight: []int{4}, Subjects: openers,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range report.Places {
		var names []string
		for _, row := range place.Rows {
			names = append(names, row.Subject)
			for _, l := range row.Loads {
				if l.P50 <= 0 || l.Rate <= 0 {
					t.Errorf("%s, %s: %+v", place.Name, row.Subject, l)
				}
			}
		}
		if want := []string{NameCore, NameRaw, NameIdempotent, NameAtMostOnce, NameParallel, NameWhole, NameTurnWrites, NameSessionWrites}; !slices.Equal(names, want) {
			t.Errorf("%s: rows %q, want %q", place.Name, names, want)
		}
	}
}

func TestSessionsTakeTurns(t *testing.T) {
	broker, err := StartEmbedded(ServeConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	s, done, err := OpenIdempotent(t.Context(), broker)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	const n = sessionTurns + 3 // more than one session bears
	sample, err := s.Run(t.Context(), 1, n)
	if err != nil {
		t.Fatal(err)
	}
	if len(sample.Latencies) != n || slices.Contains(sample.Latencies, time.Duration(0)) {
		t.Errorf("latencies: %v", sample.Latencies)
	}
	calls := s.(*calls)
	if calls.count != 2 || len(calls.ends) != 0 {
		t.Errorf("%d sessions were begun and %d not ended, want 2 and 0", calls.count, len(calls.ends))
	}
}

func TestChooseNamesWhatThereIs(t *testing.T) {
	if _, err := Choose([]string{"session", "speed"}); err == nil {
		t.Error("chose a subject that does not exist")
	}
	openers, err := Choose([]string{"session", "parallel"})
	if err != nil || len(openers) != 2 {
		t.Errorf("%d openers, %v", len(openers), err)
	}
}
