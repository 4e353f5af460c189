package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// GrowthConfig says how many sessions rest, and how long logs grow. The zero value of a number is its default.
type GrowthConfig struct {
	Config       // Dir, SyncAlways, Command, which is required, Progress, and Rounds, 0 being 5
	Idle     int // sessions that had a run and rest; 0 is 10,000
	Short    int // events of the short session; 0 is 100
	Long     int // events of the long one; 0 is 10,000
	Measured int // turns, and runs, of a round in each session; 0 is 20
}

// Growth is the outcome of MeasureGrowth. Its JSON form is the output of toolfabric bench sessions --output json.
type Growth struct {
	Machine
	Rounds int      `json:"rounds"`
	Idle   Idle     `json:"idle"`
	Events [2]int   `json:"events"` // of the short session and of the long one
	Costs  []Length `json:"costs"`
}

// Idle is what sessions at rest cost the process that runs the coordinator, its workers and a client. Its heap is read
// after two collections; figures are medians of 5 readings, each after a few more runs.
type Idle struct {
	Sessions         int     `json:"sessions"`
	HeapBefore       int64   `json:"heap_before_bytes"`
	HeapAfter        int64   `json:"heap_after_bytes"`
	Noise            int64   `json:"noise_bytes"` // between the smallest and the largest reading of those before
	PerSession       float64 `json:"bytes_per_session"`
	GoroutinesBefore int     `json:"goroutines_before"`
	GoroutinesAfter  int     `json:"goroutines_after"`
}

// Length is one thing measured in a session with a short log and in one with a long log, in turn. Times are microseconds,
// medians over the rounds of each round's median; the ratio is the median of the ratios within each round.
type Length struct {
	Subject    string  `json:"subject"`
	Short      float64 `json:"short_us"` // the fabric's own part: without the model, and without making its requests
	Long       float64 `json:"long_us"`
	Ratio      float64 `json:"ratio"`
	BuildShort float64 `json:"build_short_us"` // reading the log for the model and building its requests
	BuildLong  float64 `json:"build_long_us"`
}

// Names of what is measured in a short and in a long session.
const (
	NameTurn = "turn of one call in a run that goes on"
	NameRun  = "run of one call of a session at rest"
)

func (cfg *GrowthConfig) validate() error {
	if cfg.Command == nil || cfg.Idle < 0 || cfg.Short < 0 || cfg.Long < 0 || cfg.Measured < 0 {
		return errors.New("bench: sessions and their events are positive numbers, and the server is a process of its own")
	}
	for n, otherwise := range map[*int]int{&cfg.Idle: 10_000, &cfg.Short: 100, &cfg.Long: 10_000, &cfg.Measured: 20} {
		if *n == 0 {
			*n = otherwise
		}
	}
	return cfg.Config.validate()
}

// MeasureGrowth measures what must not grow: the coordinator with the number of sessions that rest, and the fabric's own
// part of a turn with the length of its session's log. The broker is a process of its own: what it keeps of a session is
// not counted.
func MeasureGrowth(ctx context.Context, cfg GrowthConfig) (*Growth, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	b, err := StartSeparate(ctx, cfg.Command(ServeConfig{Dir: filepath.Join(cfg.Dir, PlaceSeparate), SyncAlways: cfg.SyncAlways}))
	if err != nil {
		return nil, err
	}
	defer b.Close()
	s, done, err := openOurs(ctx, b, "benchgrowth", tool.Idempotent)
	if err != nil {
		return nil, err
	}
	defer done()
	g := &Growth{Machine: thisMachine(cfg.SyncAlways), Rounds: cfg.Rounds, Events: [2]int{cfg.Short, cfg.Long}}
	if g.Idle, err = measureIdle(ctx, s, cfg.Idle, cfg.Progress); err != nil {
		return nil, fmt.Errorf("sessions at rest: %w", err)
	}
	if g.Costs, err = measureLength(ctx, s, cfg); err != nil {
		return nil, fmt.Errorf("long sessions: %w", err)
	}
	return g, nil
}

const (
	readings     = 5  // of the heap, before and after
	runsBetween  = 64 // runs between two readings
	warmSessions = 512
)

// measureIdle reads heap and goroutines, has n sessions run and come to rest, and reads them again.
func measureIdle(ctx context.Context, s *sessions, n int, progress io.Writer) (Idle, error) {
	if _, err := (whole{s}).Run(ctx, openAtOnce, warmSessions); err != nil {
		return Idle{}, err
	}
	before, goroutinesBefore, err := readHeap(ctx, s)
	if err != nil {
		return Idle{}, err
	}
	for made := 0; made < n; made += 1000 {
		if _, err := (whole{s}).Run(ctx, openAtOnce, min(1000, n-made)); err != nil {
			return Idle{}, err
		}
		fmt.Fprintf(progress, "%d sessions rest\n", min(made+1000, n))
	}
	after, goroutinesAfter, err := readHeap(ctx, s)
	if err != nil {
		return Idle{}, err
	}
	idle := Idle{
		Sessions: n, HeapBefore: before[readings/2], HeapAfter: after[readings/2], Noise: before[readings-1] - before[0],
		GoroutinesBefore: goroutinesBefore, GoroutinesAfter: goroutinesAfter,
	}
	idle.PerSession = float64(idle.HeapAfter-idle.HeapBefore) / float64(max(n, 1))
	return idle, nil
}

// readHeap returns the live heap in bytes, several times, sorted, with some runs in between, and the goroutines when all
// of those have ended.
func readHeap(ctx context.Context, s *sessions) (heaps []int64, goroutines int, err error) {
	for range readings {
		if _, err := (whole{s}).Run(ctx, openAtOnce, runsBetween); err != nil {
			return nil, 0, err
		}
		goroutines = settled()
		heaps = append(heaps, ownHeap())
	}
	slices.Sort(heaps)
	return heaps, goroutines, nil
}

// settled waits until the number of goroutines stands still: a session's loop ends a moment after its last event is seen.
func settled() int {
	for still, n := 0, 0; ; {
		if now := runtime.NumGoroutine(); now == n {
			still++
		} else {
			still, n = 0, now
		}
		if still == 10 {
			return n
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Print writes the outcome as tables for people.
func (g *Growth) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nfiles %s; medians of %d rounds; the server is another process\n\n", g.Machine, g.Durability, g.Rounds)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "sessions at rest\theap KiB\tbytes/session\tgoroutines\t\n")
	fmt.Fprintf(t, "0\t%.0f (noise %.0f)\t\t%d\t\n", kib(g.Idle.HeapBefore), kib(g.Idle.Noise), g.Idle.GoroutinesBefore)
	fmt.Fprintf(t, "%d\t%.0f\t%.1f\t%d\t\n", g.Idle.Sessions, kib(g.Idle.HeapAfter), g.Idle.PerSession, g.Idle.GoroutinesAfter)
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteByte('\n')
	fmt.Fprintf(t, "events in the log\t%d\t%d\tratio\t\t%d\t%d\t\n", g.Events[0], g.Events[1], g.Events[0], g.Events[1])
	for _, c := range g.Costs {
		fmt.Fprintf(t, "%s\t%.0f us\t%.0f us\t%.2f\tand for its requests\t%.0f us\t%.0f us\t\n", c.Subject, c.Short, c.Long, c.Ratio, c.BuildShort, c.BuildLong)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func kib(bytes int64) float64 { return float64(bytes) / 1024 }
