package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Look at server, streams, clock and durability", Args: cobra.NoArgs,
		Long: `Doctor connects and tells what it finds, above all what would be lost when: the durability class. D1 survives the death of
processes, D2 also a power failure, D3 the loss of a server.`,
		Example: "  toolfabric doctor\n  toolfabric doctor --output json",
		RunE:    a.do(a.doctor),
	}
}

// diagnosis is what doctor found.
type diagnosis struct {
	Versions   versions               `json:"versions"`
	Server     string                 `json:"server"`
	ServerNATS string                 `json:"server_version"`
	RoundTrip  int64                  `json:"round_trip_us"`
	ClockSkew  int64                  `json:"clock_skew_ms"` // ours minus the server's, give or take half a round trip
	Durability durability             `json:"durability"`
	Streams    []natswire.StreamState `json:"streams"`
	Missing    []string               `json:"missing_streams,omitempty"`
	Pools      []client.Pool          `json:"pools"`
	Problems   []string               `json:"problems"`
}

// durability is the class of the fault model with its meaning.
type durability struct {
	Class string `json:"class"`
	Means string `json:"means"`
}

// maxSkew is how far a clock may be off before a person should know: times in traces are compared across machines.
const maxSkew = time.Second

func (a *app) doctor(ctx context.Context, _ []string) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	d := diagnosis{Versions: thisBuild(), Server: l.conn.ServerURL(), ServerNATS: l.conn.ServerVersion(), Problems: []string{}}
	if err := d.streams(ctx, l.conn); err != nil {
		return err
	}
	d.Durability = d.class(boot.ReadEndpoint(a.set.Data))
	if len(d.Missing) == 0 {
		if d.Pools, err = l.client.Pools(ctx); err != nil {
			return err
		}
	}
	d.judge(ctx, l.conn)
	for i, p := range d.Problems {
		d.Problems[i] = a.reaching(p)
	}
	return a.print(d, func() error { return a.printDiagnosis(&d) })
}

func (d *diagnosis) streams(ctx context.Context, conn *natswire.Conn) error {
	for _, name := range conn.Names().Streams() {
		before := time.Now()
		state, err := conn.StreamState(ctx, name)
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			d.Missing = append(d.Missing, name)
			continue
		}
		if err != nil {
			return err
		}
		d.Streams = append(d.Streams, state)
		trip := time.Since(before)
		if d.RoundTrip == 0 || trip.Microseconds() < d.RoundTrip {
			d.RoundTrip = trip.Microseconds()
			d.ClockSkew = before.Add(trip / 2).Sub(state.Now).Milliseconds()
		}
	}
	return nil
}

// class reads the fault model backwards: how many copies are there, and when do they reach the disk. Only up tells the latter.
func (d *diagnosis) class(local boot.Endpoint) durability {
	replicas := 0
	for _, s := range d.Streams {
		if replicas == 0 || s.Replicas < replicas {
			replicas = s.Replicas
		}
	}
	switch {
	case replicas == 0:
		return durability{"none", "there are no streams yet; a coordinator makes them"}
	case replicas >= 3:
		return durability{"D3", fmt.Sprintf("%d replicas: survives the loss of one server; combine with sync_interval: always if the servers share their power", replicas)}
	case local.URL == d.Server && local.Sync == "always":
		return durability{"D2", "one replica, synced before each ack: survives a power failure with a healthy disk"}
	case local.URL == d.Server && local.Sync != "":
		return durability{"D1", "one replica, synced every " + local.Sync + ": survives the death of any process; a power failure can lose the last " + local.Sync + " of each stream"}
	default:
		return durability{"D1", "one replica: survives the death of any process; a power failure can lose what is younger than the server's sync_interval (2 min by default; with always this is D2, which cannot be seen from here)"}
	}
}

func (d *diagnosis) judge(ctx context.Context, conn *natswire.Conn) {
	for _, name := range d.Missing {
		d.Problems = append(d.Problems, "stream "+name+" is missing: start a coordinator, it makes what it needs")
	}
	if len(d.Missing) == 0 {
		if _, err := conn.ConsumerState(ctx, conn.Names().Input(), protocol.CallsApp); protocol.CodeOf(err) == protocol.CodeNotFound {
			d.Problems = append(d.Problems, "no coordinator has ever run here: toolfabric up, or toolfabric coordinator")
		}
	}
	if skew := time.Duration(d.ClockSkew) * time.Millisecond; skew.Abs() > maxSkew {
		d.Problems = append(d.Problems, fmt.Sprintf("this machine's clock is %s off the server's: times in traces will not fit together", skew))
	}
	for _, s := range d.Streams {
		if s.MaxBytes > 0 && float64(s.Bytes) > 0.9*float64(s.MaxBytes) {
			d.Problems = append(d.Problems, fmt.Sprintf("stream %s holds %d of %d bytes: a full stream refuses what comes", s.Stream, s.Bytes, s.MaxBytes))
		}
	}
	for i := range d.Pools {
		p := &d.Pools[i]
		if p.Serving() == 0 && p.Pending > 0 {
			d.Problems = append(d.Problems, fmt.Sprintf("%d calls of %s wait and nobody serves it", p.Pending, p.Tool))
		}
	}
}

func (a *app) printDiagnosis(d *diagnosis) error {
	lines := [][2]string{
		{"toolfabric", d.Versions.Version + ", protocol " + fmt.Sprint(d.Versions.Protocol) + ", " + d.Versions.Go},
		{"server", "nats-server " + d.ServerNATS + " at " + d.Server},
		{"round trip", span(time.Duration(d.RoundTrip) * time.Microsecond)},
		{"clock", fmt.Sprintf("%+d ms against the server", d.ClockSkew)},
		{"durability", d.Durability.Class + ": " + d.Durability.Means},
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(a.out, "%-11s %s\n", line[0], a.out.Text(line[1])); err != nil {
			return err
		}
	}
	if len(d.Streams) > 0 {
		fmt.Fprintln(a.out)
		rows := make([][]string, 0, len(d.Streams))
		for _, s := range d.Streams {
			rows = append(rows, []string{s.Stream, fmt.Sprint(s.Messages), fmt.Sprint(s.Bytes), fmt.Sprint(s.Consumers), fmt.Sprint(s.Replicas)})
		}
		if err := a.table([]string{"STREAM", "MESSAGES", "BYTES", "CONSUMERS", "REPLICAS"}, rows); err != nil {
			return err
		}
	}
	for _, p := range d.Problems {
		a.say("%s %s", a.err.Paint(term.Yellow, "!"), p)
	}
	return nil
}
