package natswire

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolfabric/toolfabric/protocol"
)

// ProvisionConfig is what an operator chooses about the streams. The zero value is good for one server.
type ProvisionConfig struct {
	// Replicas of every stream, 1, 3 or 5. 0 keeps what a stream has, and is 1 for a new one.
	Replicas int
	// MaxBytes of every stream but the buckets. 0 keeps what a stream has, and is no limit for a new one.
	MaxBytes int64
	// QueueLimit is how many calls of one tool may wait or run. 0 is DefaultQueueLimit.
	QueueLimit int64
	// Memory keeps the streams in the server's memory: they are gone with it. It cannot be changed later.
	Memory bool
}

// DefaultQueueLimit is how many calls of one tool may wait or run.
const DefaultQueueLimit = 100_000

// How long what is settled stays.
const (
	callAge       = 7 * 24 * time.Hour
	resultAge     = 30 * 24 * time.Hour
	approvalAge   = 30 * 24 * time.Hour
	deadLetterAge = 30 * 24 * time.Hour
)

// Provision makes the streams and buckets of a namespace, or brings them up to date. It may run again at any time, and
// several may at once. It returns code unsupported, naming the setting, when a stream of that name exists with a setting
// that cannot be changed. It takes a minute at most: files are made, which on a busy disk takes longer than one call may.
func Provision(ctx context.Context, c *Conn, cfg ProvisionConfig) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, s := range streams(c.names, cfg) {
		if err := patiently(ctx, func() error { return c.ensureStream(ctx, s, cfg) }); err != nil {
			return err
		}
	}
	return patiently(ctx, func() error { return c.ensureSentinels(ctx) })
}

// patiently repeats what may be repeated as long as the broker is there and only does not answer in time.
func patiently(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, errSilence) || ctx.Err() != nil {
			return err
		}
	}
}

// Streams lists the streams of a namespace.
func (n Names) Streams() []string {
	return []string{n.Input(), n.Log(), n.Calls(), n.Results(), n.Wake(), n.Approval(), n.Timers(), n.ParkStream(), n.Registry(), n.DeadLetters(), n.ToolsStream(), n.ObjectStream(), n.SkillsStream()}
}

func streams(n Names, cfg ProvisionConfig) []jetstream.StreamConfig {
	all := []jetstream.StreamConfig{
		{
			Name: n.Input(), Description: "what is said to sessions",
			Subjects:  []string{join(n.ns, "input", "*", "*", "*")},
			Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
		},
		{
			Name: n.Log(), Description: "the logs of the sessions",
			Subjects: []string{n.LogFilter("*")},
			Discard:  jetstream.DiscardNew, DenyDelete: true,
			RePublish: &jetstream.RePublish{Source: n.LogFilter("*"), Destination: join(n.ns, "live", "{{wildcard(1)}}", "{{wildcard(2)}}")},
		},
		{
			Name: n.Calls(), Description: "tool calls",
			Subjects:  []string{n.CallSubject("*")},
			Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, MaxAge: callAge,
			// One tool's backlog must not block another's.
			MaxMsgsPerSubject: cmp.Or(cfg.QueueLimit, DefaultQueueLimit), DiscardNewPerSubject: true,
			AllowMsgTTL: true, // the sentinel outlives MaxAge
		},
		{
			Name: n.Results(), Description: "mailboxes of results, and claims",
			Subjects: []string{n.resultFilter(), join(n.ns, "claim", "*", "*", "*")},
			// The first message of a subject stays, the second is refused.
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxAge: resultAge,
			RePublish: &jetstream.RePublish{
				Source:      n.resultFilter(),
				Destination: join(n.ns, "done", "{{wildcard(2)}}"),
			},
		},
		{
			Name: n.Wake(), Description: "mailboxes of the calls that may park; a delivery wakes the session",
			Subjects:          []string{n.WakeFilter("*")},
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxAge: resultAge,
			RePublish: &jetstream.RePublish{
				Source:      n.WakeFilter("*"),
				Destination: join(n.ns, "done", "{{wildcard(3)}}"),
			},
		},
		{
			Name: n.Approval(), Description: "decisions on confirmations, kept as the audit",
			Subjects: []string{n.ApprovalFilter("*")},
			Discard:  jetstream.DiscardNew, MaxAge: approvalAge,
		},
		{
			Name: n.Timers(), Description: "guards and deadlines; write access to one subject is write access to all",
			Subjects:  []string{n.TimerSubject("*", "*", "*"), n.DueFilter("*")},
			Retention: jetstream.WorkQueuePolicy, AllowMsgSchedules: true, AllowRollup: true,
		},
		{
			Name: n.Registry(), Description: "which worker serves which tool",
			Subjects:          []string{n.RegistrationSubject("*", "*")},
			MaxMsgsPerSubject: 1, AllowMsgTTL: true,
		},
		{
			Name: n.DeadLetters(), Description: "what was given up",
			Subjects: []string{
				n.AdvisorySubject(AdvisoryMaxDeliveries, "*"),
				n.AdvisorySubject(AdvisoryTerminated, "*"),
				join(n.ns, "dlq", ">"),
			},
			MaxAge: deadLetterAge,
		},
		{
			Name: n.ToolsStream(), Description: "accepted declarations of tools",
			Subjects:          []string{"$KV." + n.Tools() + ".>"},
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DenyDelete: true, AllowRollup: true,
		},
		{
			Name: n.ParkStream(), Description: "what waits, for whom and since when: an index of the logs",
			Subjects:          []string{"$KV." + n.Park() + ".>"},
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DenyDelete: true, AllowRollup: true, AllowMsgTTL: true,
		},
		{
			Name: n.ObjectStream(), Description: "large bodies",
			Subjects: []string{"$O." + n.Objects() + ".C.>", "$O." + n.Objects() + ".M.>"},
			Discard:  jetstream.DiscardNew, AllowRollup: true,
		},
		{
			Name: n.SkillsStream(), Description: "skills of agents",
			Subjects: []string{"$O." + n.Skills() + ".C.>", "$O." + n.Skills() + ".M.>"},
			Discard:  jetstream.DiscardNew, AllowRollup: true,
		},
	}
	for i := range all {
		s := &all[i]
		s.AllowDirect = true
		s.MaxConsumers = -1
		s.MaxMsgs = -1
		s.MaxBytes = -1
		s.MaxMsgSize = -1
		if s.MaxMsgsPerSubject == 0 {
			s.MaxMsgsPerSubject = -1
		}
		s.Storage = jetstream.FileStorage
		if cfg.Memory {
			s.Storage = jetstream.MemoryStorage
		}
		s.Duplicates = 2 * time.Minute
	}
	return all
}

func (n Names) resultFilter() string { return join(n.ns, "result", "*", "*", "*", "*") }

// ensureStream creates a stream, or updates the one that exists.
func (c *Conn) ensureStream(ctx context.Context, want jetstream.StreamConfig, cfg ProvisionConfig) error {
	what := "make the stream " + want.Name
	var info struct {
		Config jetstream.StreamConfig `json:"config"`
	}
	err := c.call(ctx, "STREAM.INFO."+want.Name, what, nil, &info)
	if number(err) == jsStreamNotFound {
		want.Replicas, want.MaxBytes = cmp.Or(cfg.Replicas, 1), cmp.Or(cfg.MaxBytes, -1)
		err = c.call(ctx, "STREAM.CREATE."+want.Name, what, want, nil)
		if number(err) != jsNameInUse {
			return err
		}
		// Somebody made it in between, with other limits.
		err = c.call(ctx, "STREAM.INFO."+want.Name, what, nil, &info)
	}
	if err != nil {
		return err
	}
	have := info.Config
	if setting := incompatible(have, want); setting != "" {
		return protocol.Errorf(protocol.CodeUnsupported, "the stream %s exists with another %s, which cannot be changed; use another namespace or remove the stream", want.Name, setting)
	}
	want.Replicas = cmp.Or(cfg.Replicas, have.Replicas)
	want.MaxBytes = cmp.Or(cfg.MaxBytes, have.MaxBytes)
	want.Placement = have.Placement
	err = c.call(ctx, "STREAM.UPDATE."+want.Name, what, want, nil)
	if number(err) == jsStreamConfig {
		e, _ := asAPIError(err)
		return protocol.Wrap(err, protocol.CodeUnsupported, "the stream %s exists with a setting that cannot be changed (%s); use another namespace or remove the stream", want.Name, e.Description)
	}
	return err
}

// incompatible names the first setting of an existing stream that an update cannot bring to what is wanted.
func incompatible(have, want jetstream.StreamConfig) string {
	for _, s := range []struct {
		name string
		bad  bool
	}{
		{"retention", have.Retention != want.Retention},
		{"storage", have.Storage != want.Storage},
		{"max_consumers", have.MaxConsumers != want.MaxConsumers},
		{"deny_delete", have.DenyDelete && !want.DenyDelete},
		{"deny_purge", have.DenyPurge},
		{"allow_msg_schedules", have.AllowMsgSchedules && !want.AllowMsgSchedules},
		{"allow_msg_ttl", have.AllowMsgTTL && !want.AllowMsgTTL},
		{"allow_msg_counter", have.AllowMsgCounter},
		{"mirror", have.Mirror != nil},
		{"sealed", have.Sealed},
	} {
		if s.bad {
			return s.name
		}
	}
	return ""
}
