package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Parking is the outcome of MeasurePark. Its JSON form is the output of toolfabric bench park --output json.
type Parking struct {
	Machine
	Sessions  int          `json:"sessions"`
	InFlight  int          `json:"in_flight"`
	Rate      float64      `json:"parked_per_second"`
	Steps     []ParkStep   `json:"steps"`      // none, a tenth, half and all
	Session   Cost         `json:"session"`    // what each costs while it waits: the last step against the first
	Streams   []StreamCost `json:"streams"`    // and what is stored for each
	FirstPage Spread       `json:"first_page"` // of 100 calls
	Find      Spread       `json:"find"`       // a call by its id
	Replies   []Reply      `json:"replies"`
}

// ParkStep is what there was while so many sessions waited. Heaps are live: read after two collections.
type ParkStep struct {
	Parked     int   `json:"parked"`
	Heap       int64 `json:"heap_bytes"` // of this process: coordinator, workers, client
	Goroutines int   `json:"goroutines"`
	ServerHeap int64 `json:"server_heap_bytes"`
	Disk       int64 `json:"disk_bytes"` // of the server
}

// Cost is what each session that waits costs, in bytes.
type Cost struct {
	Heap       float64 `json:"heap_bytes"`
	ServerHeap float64 `json:"server_heap_bytes"`
	Disk       float64 `json:"disk_bytes"`
}

// StreamCost is what a session that waits has stored in a stream.
type StreamCost struct {
	Stream   string  `json:"stream"`
	Messages float64 `json:"messages"`
	Bytes    float64 `json:"bytes"`
}

// Spread is how long something took, in microseconds.
type Spread struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
}

// Reply is how long it took until a worker had started a call. Ratio is the first subject's p50 to this one's.
type Reply struct {
	Subject string `json:"subject"`
	Spread
	Ratio float64 `json:"ratio"`
}

// Names of the starts that are timed, one at a time and in turn.
const (
	NameApproved  = "approval published, to the worker's start"
	NameInSession = "ordinary call, from the model's answer"
	NameCalled    = "ordinary call, from the client's publish"
)

// each is what one more session costs, between the first step and the last.
func each(steps []ParkStep) Cost {
	first, last := steps[0], steps[len(steps)-1]
	n := float64(max(last.Parked-first.Parked, 1))
	return Cost{
		Heap: float64(last.Heap-first.Heap) / n, ServerHeap: float64(last.ServerHeap-first.ServerHeap) / n, Disk: float64(last.Disk-first.Disk) / n,
	}
}

// total keeps what the streams hold for each session, warm ones included.
func (r *Parking) total(streams []natswire.StreamState) {
	r.Streams = nil
	n := float64(parkWarmth + r.Steps[len(r.Steps)-1].Parked)
	for _, s := range streams {
		cost := StreamCost{Stream: s.Stream, Messages: float64(s.Messages) / n, Bytes: float64(s.Bytes) / n}
		if cost.Messages > 0.5 { // the others hold a few for all
			r.Streams = append(r.Streams, cost)
		}
	}
}

// Print writes the outcome as tables for people.
func (r *Parking) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nfiles %s; the server is another process\n", r.Machine, r.Durability)
	fmt.Fprintf(&b, "%.0f sessions a second came to wait, %d at once\n\n", r.Rate, r.InFlight)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "sessions waiting\tcoordinator heap KiB\tgoroutines\tserver heap KiB\tserver disk KiB\t\n")
	for _, s := range r.Steps {
		fmt.Fprintf(t, "%d\t%.0f\t%d\t%.0f\t%.0f\t\n", s.Parked, kib(s.Heap), s.Goroutines, kib(s.ServerHeap), kib(s.Disk))
	}
	fmt.Fprintf(t, "bytes a session\t%.1f\t\t%.0f\t%.0f\t\n", r.Session.Heap, r.Session.ServerHeap, r.Session.Disk)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprint(t, "\nstored for a session\tmessages\tbytes\t\n")
	for _, s := range r.Streams {
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t\n", s.Stream, s.Messages, s.Bytes)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprint(t, "\n\tp50 us\tp99 us\tratio\t\n")
	fmt.Fprintf(t, "first page of 100\t%.0f\t%.0f\t\t\n", r.FirstPage.P50, r.FirstPage.P99)
	fmt.Fprintf(t, "one by its id\t%.0f\t%.0f\t\t\n", r.Find.P50, r.Find.P99)
	for i, reply := range r.Replies {
		over := ""
		if i > 0 {
			over = fmt.Sprintf("%.2f", reply.Ratio)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t\n", reply.Subject, reply.P50, reply.P99, over)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
