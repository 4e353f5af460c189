package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Report is the outcome. Its JSON form is what --output json prints.
type Report struct {
	Time     time.Time `json:"time"` // UTC
	OS       string    `json:"os"`
	Arch     string    `json:"arch"`
	CPUs     int       `json:"cpus"`
	Go       string    `json:"go"`
	Rounds   int       `json:"rounds"`
	InFlight int       `json:"in_flight"` // of the columns for throughput
	Rows     []Row     `json:"rows"`
}

// Row is one peer. Figures are medians over the rounds.
type Row struct {
	System     string  `json:"system"`
	Durability string  `json:"durability"`
	Synced     bool    `json:"synced"` // each write is on the disk before it is acknowledged
	Notes      string  `json:"notes"`
	Missing    string  `json:"missing,omitempty"` // why it was not measured
	P50        float64 `json:"p50_ms"`            // milliseconds, 1 in flight
	P99        float64 `json:"p99_ms"`
	Rate       float64 `json:"per_second"` // calls, with InFlight in flight
	ManyP50    float64 `json:"in_flight_p50_ms"`
	Calls      int     `json:"calls"` // of a round with InFlight in flight: fewer than asked for when it is slow
}

func newReport(cfg Config) *Report {
	return &Report{
		Time: time.Now().UTC(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version(),
		Rounds: cfg.Rounds, InFlight: cfg.Many,
	}
}

func (r *Report) add(p Peer, rounds []both, missing error) {
	row := Row{System: p.System, Durability: p.Durability, Synced: p.Synced, Notes: p.Notes}
	if missing != nil {
		row.Missing = strings.Join(strings.Fields(missing.Error()), " ")
		r.Rows = append(r.Rows, row)
		return
	}
	over := func(value func(both) float64) float64 {
		values := make([]float64, len(rounds))
		for i, b := range rounds {
			values[i] = value(b)
		}
		return median(values)
	}
	row.P50 = over(func(b both) float64 { return millis(b.single.p50) })
	row.P99 = over(func(b both) float64 { return millis(b.single.p99) })
	row.Rate = over(func(b both) float64 { return b.many.rate })
	row.ManyP50 = over(func(b both) float64 { return millis(b.many.p50) })
	row.Calls = int(over(func(b both) float64 { return float64(b.many.calls) }))
	r.Rows = append(r.Rows, row)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median of values that are not empty; it sorts them.
func median(values []float64) float64 {
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid]
	}
	return (values[mid-1] + values[mid]) / 2
}

// Print writes the report as a table in Markdown.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| | durability | p50 ms | p99 ms | calls/s, %d in flight | p50 ms, %d in flight |\n|---|---|--:|--:|--:|--:|\n", r.InFlight, r.InFlight)
	for _, row := range r.Rows {
		if row.Missing != "" {
			fmt.Fprintf(&b, "| %s | %s | not measured: %s | | | |\n", row.System, row.Durability, strings.ReplaceAll(row.Missing, "|", "/"))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %.2f | %.2f | %.0f | %.1f |\n", row.System, row.Durability, row.P50, row.P99, row.Rate, row.ManyP50)
	}
	b.WriteByte('\n')
	noted := map[string]bool{}
	for _, row := range r.Rows {
		if !noted[row.System] {
			fmt.Fprintf(&b, "- %s: %s.\n", row.System, row.Notes)
		}
		noted[row.System] = true
	}
	fmt.Fprintf(&b, "\n%s/%s, %d CPUs, %s, %s; medians of %d rounds in which all take turns.\n", r.OS, r.Arch, r.CPUs, r.Go, r.Time.Format(time.DateOnly), r.Rounds)
	_, err := io.WriteString(w, b.String())
	return err
}
