package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

// serveDir makes the test binary a separate broker.
const serveDir = "BENCH_TEST_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		if err := Serve(context.Background(), ServeConfig{Dir: dir}, os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func self(cfg ServeConfig) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveDir+"="+cfg.Dir)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestRunReportsEverySubjectInBothPlaces(t *testing.T) {
	var progress bytes.Buffer
	report, err := Run(t.Context(), Config{
		Dir: t.TempDir(), Command: self, Rounds: 2, SingleCalls: 5, Calls: 20, InFlight: []int{4}, Progress: &progress,
		Subjects: []Opener{func(context.Context, *Broker) (Subject, func(), error) { return instant{}, func() {}, nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Places) != 2 {
		t.Fatalf("places: %+v", report.Places)
	}
	for _, place := range report.Places {
		var names []string
		for _, row := range place.Rows {
			names = append(names, row.Subject)
			for i, l := range row.Loads {
				if l.P50 <= 0 || l.P99 < l.P50 || l.Rate <= 0 || l.RateRatio <= 0 || l.InFlight != []int{1, 4}[i] {
					t.Errorf("%s, %s: %+v", place.Name, row.Subject, l)
				}
				if row.Subject == NameRaw && (l.P50Ratio != 1 || l.RateRatio != 1) {
					t.Errorf("the baseline's ratio to itself: %+v", l)
				}
			}
		}
		if want := []string{NameCore, NameRaw, "instant"}; !slices.Equal(names, want) {
			t.Errorf("%s: rows %q, want %q", place.Name, names, want)
		}
	}
	if n := strings.Count(progress.String(), "\n"); n != 4 {
		t.Errorf("%d lines of progress, want one for each of 2 rounds in 2 places:\n%s", n, &progress)
	}
	var table bytes.Buffer
	if err := report.Print(&table); err != nil || strings.Count(table.String(), "\n") != 3+2*(3+3*2) {
		t.Errorf("%v\n%s", err, &table)
	}
	data, err := json.Marshal(report)
	if err != nil || !bytes.Contains(data, []byte(`"p50_us"`)) {
		t.Errorf("%s, %v", data, err)
	}
}

// instant is a subject that does nothing in a microsecond.
type instant struct{}

func (instant) Name() string { return "instant" }

func (instant) Run(_ context.Context, _, n int) (Sample, error) {
	return Sample{Latencies: slices.Repeat([]time.Duration{time.Microsecond}, n), Elapsed: time.Millisecond}, nil
}

// failing is a subject whose runs fail.
type failing struct{ instant }

var errFailing = errors.New("no answer")

func (failing) Run(ctx context.Context, inFlight, n int) (Sample, error) {
	return Drive(ctx, inFlight, n, func(_ context.Context, _, i int) error {
		if i == n-1 {
			return errFailing
		}
		return nil
	})
}

func TestRunFailsWithItsSubject(t *testing.T) {
	_, err := Run(t.Context(), Config{
		Dir: t.TempDir(), Rounds: 1, SingleCalls: 3, Calls: 3, InFlight: []int{2},
		Subjects: []Opener{func(context.Context, *Broker) (Subject, func(), error) { return failing{}, func() {}, nil }},
	})
	if !errors.Is(err, errFailing) || !strings.Contains(err.Error(), "call 3 of 3") {
		t.Errorf("got %v", err)
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no directory":      {Dir: "does-not-exist"},
		"negative rounds":   {Dir: ".", Rounds: -1},
		"nothing in flight": {Dir: ".", InFlight: []int{0}},
	} {
		if _, err := Run(t.Context(), cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRawRoundTripIsDurable(t *testing.T) {
	b, err := StartEmbedded(ServeConfig{Dir: t.TempDir(), SyncAlways: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, closeRaw, err := OpenRaw(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer closeRaw()
	for _, n := range []int{30, 20} { // the second run meets an empty mailbox
		if _, err := s.Run(t.Context(), 8, n); err != nil {
			t.Fatal(err)
		}
		if got := stored(t, b, paths("raw").results()); got != uint64(n) {
			t.Errorf("%d results stored for %d calls", got, n)
		}
		if got := stored(t, b, paths("raw").calls()); got != 1 {
			t.Errorf("%d messages left in the queue, want only the sentinel", got)
		}
	}
}

func TestRawRunEndsWithItsContext(t *testing.T) {
	b, err := StartEmbedded(ServeConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, closeRaw, err := OpenRaw(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer closeRaw()
	nc, err := b.Connect("saboteur")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), paths("raw").calls(), "raw"); err != nil { // nobody answers any more
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Run(ctx, 1, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func stored(t *testing.T, b *Broker, stream string) uint64 {
	t.Helper()
	nc, err := b.Connect("reader")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func TestSeparateBrokerThatDoesNotStartIsAnError(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$") // ends at once and says nothing of an address
	if b, err := StartSeparate(t.Context(), cmd); err == nil {
		b.Close()
		t.Error("started")
	}
}

func TestServeEndsWithItsInput(t *testing.T) {
	stdin, feed := io.Pipe()
	hello, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), ServeConfig{Dir: t.TempDir()}, stdin, stdout) }()
	var g greeting
	if err := json.NewDecoder(hello).Decode(&g); err != nil || !strings.HasPrefix(g.URL, "nats://127.0.0.1:") {
		t.Fatalf("greeting %+v, %v", g, err)
	}
	_ = feed.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestPercentileAndMedian(t *testing.T) {
	ms := func(n ...int) (all []time.Duration) {
		for _, v := range n {
			all = append(all, time.Duration(v))
		}
		return all
	}
	for _, c := range []struct {
		sorted []time.Duration
		p      int
		want   time.Duration
	}{{ms(7), 50, 7}, {ms(1, 2, 3), 50, 2}, {ms(1, 2, 3, 4), 50, 2}, {ms(1, 2, 3, 4), 99, 4}, {ms(1, 2), 0, 1}} {
		if got := percentile(c.sorted, c.p); got != c.want {
			t.Errorf("p%d of %v: %d, want %d", c.p, c.sorted, got, c.want)
		}
	}
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median of three: %v", got)
	}
	if got := median([]float64{4, 1}); got != 2.5 {
		t.Errorf("median of two: %v", got)
	}
}
