package natswire

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// Durability is what a loss would cost, as far as a client can see it. How often the server syncs its disk is not told to
// clients: whoever runs it knows.
type Durability struct {
	ServerVersion string
	Cluster       string // empty for a single server
	Replicas      int    // the fewest that any stream has
	Weakest       string // the stream that has them
	Memory        bool   // some stream is kept in memory: nothing of it survives its server
}

// Durability reads how the streams of the namespace are kept.
func (c *Conn) Durability(ctx context.Context) (Durability, error) {
	d := Durability{ServerVersion: c.ServerVersion(), Cluster: c.nc.ConnectedClusterName()}
	for _, name := range c.names.Streams() {
		var info struct {
			Config jetstream.StreamConfig `json:"config"`
		}
		if err := c.call(ctx, "STREAM.INFO."+name, "read the stream "+name, nil, &info); err != nil {
			return Durability{}, err
		}
		if d.Weakest == "" || info.Config.Replicas < d.Replicas {
			d.Replicas, d.Weakest = info.Config.Replicas, name
		}
		d.Memory = d.Memory || info.Config.Storage == jetstream.MemoryStorage
	}
	return d, nil
}
