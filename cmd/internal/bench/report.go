package bench

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
)

// Report is the outcome of one run. Its JSON form is the output of toolfabric bench --output json.
type Report struct {
	Machine
	Payload  int     `json:"payload_bytes"`
	Rounds   int     `json:"rounds"`
	Baseline string  `json:"baseline"` // what ratios are against
	Places   []Place `json:"places"`
}

// Machine is when, where and on what was measured.
type Machine struct {
	Time       time.Time `json:"time"` // start, UTC
	OS         string    `json:"os"`
	Arch       string    `json:"arch"`
	CPUs       int       `json:"cpus"` // that this process may use
	Go         string    `json:"go"`
	Toolfabric string    `json:"toolfabric"` // version of this module, as the build knows it
	Server     string    `json:"nats_server"`
	Client     string    `json:"nats_go"`
	Durability string    `json:"durability"` // when a stored message reaches the disk
	Tracing    string    `json:"tracing"`    // of the fabric; the yardsticks have none
}

// Place is all measurements with the broker in one place.
type Place struct {
	Name string `json:"name"` // PlaceEmbedded or PlaceSeparate
	Rows []Row  `json:"rows"` // core, raw, then the caller's in their order
}

// Row is one subject. Figures are medians over the rounds.
type Row struct {
	Subject string `json:"subject"`
	Loads   []Load `json:"loads"` // 1 in flight first
}

// Load is one subject with a number of calls in flight. A ratio is the median of the ratios to the baseline within each
// round; the baseline's own is 1, and 0 says that it could not be measured.
type Load struct {
	InFlight  int     `json:"in_flight"`
	Calls     int     `json:"calls"`      // per round
	P50       float64 `json:"p50_us"`     // microseconds
	P99       float64 `json:"p99_us"`     // microseconds
	Rate      float64 `json:"per_second"` // calls
	CPU       float64 `json:"cpu_us"`     // microseconds of CPU per call, over all processes; 0 where it is not known
	P50Ratio  float64 `json:"p50_ratio"`
	RateRatio float64 `json:"rate_ratio"`
	CPURatio  float64 `json:"cpu_ratio"`
}

func newReport(cfg Config) *Report {
	return &Report{Machine: thisMachine(cfg.SyncAlways), Payload: payloadSize, Rounds: cfg.Rounds, Baseline: NameRaw}
}

func thisMachine(syncAlways bool) Machine {
	durability := "synced every " + embed.SyncInterval.String()
	if syncAlways {
		durability = "synced before each ack"
	}
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return Machine{
		Time: time.Now().UTC(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0),
		Go: runtime.Version(), Toolfabric: version, Server: server.VERSION, Client: nats.Version, Durability: durability, Tracing: tracing,
	}
}

// String is the line that a printed report begins with.
func (m Machine) String() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s, nats-server %s, nats.go %s", m.OS, m.Arch, m.CPUs, m.Go, m.Server, m.Client)
}

func summarise(names []string, loads []load, rounds []round) []Row {
	baseline := slices.Index(names, NameRaw)
	rows := make([]Row, len(names))
	for s, name := range names {
		rows[s] = Row{Subject: name, Loads: make([]Load, len(loads))}
		for l, load := range loads {
			over := func(value func(own, base figures) float64) float64 {
				values := make([]float64, len(rounds))
				for i, r := range rounds {
					values[i] = value(r[s][l], r[baseline][l])
				}
				return median(values)
			}
			rows[s].Loads[l] = Load{
				InFlight:  load.inFlight,
				Calls:     load.calls,
				P50:       over(func(own, _ figures) float64 { return micros(own.p50) }),
				P99:       over(func(own, _ figures) float64 { return micros(own.p99) }),
				Rate:      over(func(own, _ figures) float64 { return own.rate }),
				CPU:       over(func(own, _ figures) float64 { return micros(own.cpu) }),
				P50Ratio:  over(func(own, base figures) float64 { return ratio(micros(own.p50), micros(base.p50)) }),
				RateRatio: over(func(own, base figures) float64 { return ratio(own.rate, base.rate) }),
				CPURatio:  over(func(own, base figures) float64 { return ratio(micros(own.cpu), micros(base.cpu)) }),
			}
		}
	}
	return rows
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func ratio(own, base float64) float64 {
	if base == 0 {
		return 0
	}
	return own / base
}

// median of values that are not empty; it sorts them.
func median(values []float64) float64 {
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid]
	}
	return (values[mid-1] + values[mid]) / 2
}

// Print writes the report as tables for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, r.Machine)
	fmt.Fprintf(&b, "files %s; %d byte payloads; medians of %d rounds; ratios to the %s\n", r.Durability, r.Payload, r.Rounds, r.Baseline)
	fmt.Fprintf(&b, "tracing of the fabric %s\n", r.Tracing)
	for _, place := range r.Places {
		fmt.Fprintf(&b, "\n%s broker\n", place.Name)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(t, "\tin flight\tp50 us\tratio\tp99 us\tcalls/s\tratio\tCPU us/call\tratio\t\n")
		for _, row := range place.Rows {
			for i, l := range row.Loads {
				name := row.Subject
				if i > 0 {
					name = ""
				}
				fmt.Fprintf(t, "%s\t%d\t%.0f\t%.2f\t%.0f\t%.0f\t%.2f\t%.0f\t%.2f\t\n",
					name, l.InFlight, l.P50, l.P50Ratio, l.P99, l.Rate, l.RateRatio, l.CPU, l.CPURatio)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
