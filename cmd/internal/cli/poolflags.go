package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/toolfabric/toolfabric/cmd/internal/workerfile"
	"github.com/toolfabric/toolfabric/protocol"
)

// poolOptions are flags that the commands which serve tools have in common.
type poolOptions struct {
	effect string
	slots  int
	grace  time.Duration
}

// add defines the flags. def is the effect class that holds without --effect; empty leaves that flag out.
func (o *poolOptions) add(f *pflag.FlagSet, p *workerfile.Pool, def string) {
	if def != "" {
		f.StringVar(&o.effect, "effect", "", "what a call does to the world: read, idempotent or at_most_once (default "+def+")")
	}
	f.DurationVar(&p.Timeout, "timeout", 0, "of one attempt (default 30s)")
	f.DurationVar(&p.QueueTimeout, "queue-timeout", 0, "how long a call may wait for a worker (default 30s)")
	f.BoolVar(&p.Confirm, "confirm", false, "a person must agree to each call")
	f.DurationVar(&p.ParkTimeout, "park-timeout", 0, "how long a call may wait for a person, or for its later result (default 168h)")
	f.IntVar(&p.Attempts, "attempts", 0, "attempts of a call, retryable failures included (default 3)")
	f.IntVar(&p.MaxActive, "max-active", 0, "calls at once over the whole pool (default no limit)")
	f.IntVar(&o.slots, "slots", 0, "calls this worker runs at once (default four per CPU, or two per tool if that is more)")
	f.DurationVar(&o.grace, "grace", 0, "how long running calls may go on after SIGTERM (default 20s)")
}

// check reads what was given into p.
func (o *poolOptions) check(f *pflag.FlagSet, p *workerfile.Pool) error {
	if o.slots < 1 && f.Changed("slots") {
		return protocol.Errorf(protocol.CodeUsage, "--slots %d: a worker runs at least one call at once; leave it out for the default", o.slots)
	}
	p.Effect = protocol.Effect(o.effect)
	if err := workerfile.CheckEffect(p.Effect); err != nil {
		return err
	}
	return nil
}
