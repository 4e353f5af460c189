package sim_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/tests/sim"
)

var (
	seeds    = flag.Int("seeds", 150, "how many seeds the fabric is run with; negative runs without end")
	firstOne = flag.Uint64("seed", 1, "the first seed; with -seeds 1 it replays one run")
	repeat   = flag.Int("repeat", 5, "how many seeds are run twice and compared")
	planFile = flag.String("plan", "", "a file with a plan, to be run instead of seeds")
	survey   = flag.Bool("survey", false, "go on after a seed that fails, with a line for each")
	verbose  = flag.Bool("trace", false, "print the trace of a failing seed")
)

// storm runs a plan. The seed decides all that the plan leaves open.
func storm(t *testing.T, p plan) (found []sim.Violation, trace []string) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.New(sim.Config{Names: names(t), Seed: p.Seed})
		go w.Run(t.Context())
		f := newFabric(t, w, p)
		found = p.run(f)
		if trace = w.Trace(); *verbose {
			trace = append(trace, logs(w)...)
		}
		f.end()
	})
	return found, trace
}

// logs is all that was appended to logs.
func logs(w *sim.World) (all []string) {
	for _, r := range w.Records() {
		if r.Stream == w.Names().Log() {
			all = append(all, fmt.Sprintf("%s %d at %d: %s", r.Subject, r.Seq, r.Time.UnixMilli(), r.Data))
		}
	}
	return all
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

func report(t *testing.T, p plan, found []sim.Violation, trace []string) {
	t.Helper()
	if *verbose {
		t.Log("\n" + strings.Join(trace, "\n"))
	}
	if *survey {
		t.Errorf("seed %d: %s", p.Seed, found[0])
		return
	}
	for _, v := range found {
		t.Errorf("seed %d: %s", p.Seed, v)
	}
	t.Logf("replay: go test ./tests/sim -run TestNothingIsLostOrDoubledInAStorm -args -seed %d -seeds 1 -trace", p.Seed)
	small := minimal(t, p)
	data, _ := json.MarshalIndent(small, "", " ")
	t.Fatalf("what is left of its plan that still fails; kept as testdata/seeds/NAME.json with its why, it is run for ever, with -plan FILE alone:\n%s", data)
}

func TestNothingIsLostOrDoubledInAStorm(t *testing.T) {
	if *planFile != "" {
		p := readPlan(t, *planFile)
		if found, trace := storm(t, p); len(found) > 0 {
			report(t, p, found, trace)
		}
		return
	}
	ctx := t.Context()
	if *seeds < 0 { // it ends when somebody interrupts it
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
	}
	began, said := time.Now(), time.Now()
	i := uint64(0)
	for ; (*seeds < 0 || i < uint64(*seeds)) && ctx.Err() == nil; i++ {
		p := planOf(*firstOne+i, names(t))
		if found, trace := storm(t, p); len(found) > 0 {
			report(t, p, found, trace)
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			t.Logf("%d seeds, %.1f a second", i+1, float64(i+1)/time.Since(began).Seconds())
		}
	}
	t.Logf("%d seeds from %d on, %.1f a second", i, *firstOne, float64(i)/time.Since(began).Seconds())
}

// TestPlansThatFailedOnceHold runs what storms found, each with the reason that it is kept for.
func TestPlansThatFailedOnceHold(t *testing.T) {
	files, err := filepath.Glob("testdata/seeds/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no plan is kept", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			p := readPlan(t, file)
			if p.Why == "" {
				t.Error("the plan does not say why it is kept")
			}
			for _, v := range first(storm(t, p)) {
				t.Errorf("%s (kept because: %s)", v, p.Why)
			}
		})
	}
}

func first(found []sim.Violation, _ []string) []sim.Violation { return found }

func readPlan(t *testing.T, file string) (p plan) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}
