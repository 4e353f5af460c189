package natswire

import (
	"context"
	"time"
)

// Bus is the broker as the actors see it. Coordinators and workers wait on nothing but a Bus, a Clock and their own inbox,
// so that a simulator can replay any run. All methods may be called concurrently. Every call ends with ctx and
// after 5 s at the latest. Errors are *protocol.Error: not_found, storage_full, forbidden, bus_unreachable,
// consumer_gone, too_large, and what each method names.
//
// A method that returns an error may have had its effect all the same, now or later, unless the error's code says that the
// broker refused (fenced, already_answered, storage_full, too_large, forbidden, not_found).
type Bus interface {
	// Publish stores m in the stream that owns its subject and waits for the broker's ack. With m.Expect it returns code
	// fenced when the subject's last sequence is another; on a mailbox stream already_answered when the subject has its
	// message; storage_full when the stream is full. Both kinds of duplicate and refusal are told apart here and only here.
	Publish(ctx context.Context, m Msg) (Ack, error)
	// Send is Publish without waiting: done is called once with what Publish would return, on any goroutine, perhaps before
	// Send returns. It must not block.
	Send(m Msg, done func(Ack, error))
	// Emit publishes to whoever listens, at most once, stored nowhere.
	Emit(ctx context.Context, m Msg) error
	// Request publishes m and waits for one reply; code not_found when nobody listens.
	Request(ctx context.Context, m Msg) (Msg, error)
	// Subscribe hands core messages to deliver, in order, on a goroutine of the subscription. deliver must not block.
	// A reply goes to m.Reply by Emit. The subscription is known to the broker before any later call of this Bus is.
	Subscribe(subject string, deliver func(Msg)) (unsubscribe func(), err error)
	// Listen is Subscribe without the round trip in which the broker may refuse it: who is not allowed hears nothing.
	Listen(subject string, deliver func(Msg)) (unsubscribe func(), err error)
	// Missed calls tell each time after the connection was lost and is back, with all subscriptions: what nobody stored
	// meanwhile has passed them by. tell must not block.
	Missed(tell func()) (stop func())

	// Last reads the newest message of an exact subject from the stream's leader; code not_found when there is none.
	Last(ctx context.Context, stream, subject string) (Stored, error)
	// Next reads the first message of a subject (wildcards allowed) from sequence from on, from the stream's leader; code
	// not_found when there is none.
	Next(ctx context.Context, stream, subject string, from uint64) (Stored, error)
	// At reads one message by its sequence from the stream's leader; code not_found when it is gone.
	At(ctx context.Context, stream string, seq uint64) (Stored, error)
	// Read returns up to max messages of a subject (wildcards allowed), in stream order, from sequence from on. It may be
	// stale: what is missing at the end may exist.
	Read(ctx context.Context, stream, subject string, from uint64, max int) ([]Stored, error)
	// Latest returns the newest message of each subject that matches a wildcard, in stream order. It may be stale.
	Latest(ctx context.Context, stream, subject string) ([]Stored, error)

	// EnsureConsumer creates or updates a durable pull consumer. Idempotent.
	EnsureConsumer(ctx context.Context, c Consumer) error
	// ConsumerState tells what a durable holds; code not_found when it does not exist.
	ConsumerState(ctx context.Context, stream, durable string) (ConsumerState, error)
	// Pull opens a pull subscription on a durable that exists. See Puller.
	Pull(ctx context.Context, stream, durable string, on PullEvents) (Puller, error)

	// Purge removes the messages of a subject but the newest keep. Idempotent.
	Purge(ctx context.Context, stream, subject string, keep uint64) error
	// Remove removes one message by sequence. Idempotent.
	Remove(ctx context.Context, stream string, seq uint64) error

	// PutObject stores data in the object store under name; the same name again with the same data is no error.
	PutObject(ctx context.Context, name string, data []byte) error
	// GetObject reads an object whole; code not_found when it is missing or incomplete.
	GetObject(ctx context.Context, name string) ([]byte, error)
}

// Msg is a message to send, or one that was received without being stored. The receiver owns Data and Header.
type Msg struct {
	Subject string
	Reply   string
	Header  Header
	Data    []byte
	ID      string        // broker-side dedupe id; empty is none
	Expect  *uint64       // expected last sequence of the subject, 0 for none yet; nil expects nothing
	TTL     time.Duration // per-message time to live, whole seconds; 0 is the stream's
	At      time.Time     // schedule: store now, fire to Target at this instant; zero is now
	Target  string        // subject a scheduled message fires on
}

// Header is a message's headers. Keys are case-sensitive on the wire; Get reads them without case.
type Header map[string]string

// Ack is the broker's word that a message is stored.
type Ack struct {
	Seq       uint64
	Duplicate bool // the id was seen before: this message, or an earlier one with the same id, is stored
}

// Stored is a message as a stream holds it.
type Stored struct {
	Subject string
	Header  Header
	Data    []byte
	Seq     uint64
	Time    time.Time // JetStream timestamp
}

// Consumer is the configuration of a durable pull consumer with one exact or wildcard filter.
type Consumer struct {
	Stream, Durable, Filter string
	AckWait                 time.Duration
	MaxDeliver              int // -1 is unlimited
	MaxAckPending           int // -1 is unlimited
	Paused                  bool
}

// ConsumerState is what a durable holds now.
type ConsumerState struct {
	Pending    uint64    // stored, not delivered yet
	AckPending int       // delivered, not acked yet
	Waiting    int       // open pull requests
	Delivered  uint64    // stream sequence of the newest message ever delivered
	Time       time.Time // the broker's clock when it answered; feeds BrokerTime.Sync
	Config     Consumer
}

// PullEvents is what a pull subscription tells its owner. Its functions run on one goroutine of the subscription, in
// order, and must not block.
type PullEvents struct {
	Deliver func(Delivery)
	// Lost ends the subscription for good: the consumer was deleted (code consumer_gone) or the connection is closed. What
	// was delivered may still be acked. The owner opens a new one after a pause.
	Lost func(error)
}

// Puller receives only what it asks for.
type Puller interface {
	// Want adds n to the number of messages the broker may deliver. Requests are renewed by themselves, also after a
	// reconnect, until that many have come.
	Want(n int)
	// Close ends the subscription and gives back what was asked for. Messages already delivered stay with their owner.
	Close()
}

// Delivery is one delivery of a message of a work queue or limits stream through a durable. The methods are not fenced by
// the broker: an ack of an old delivery also ends a newer one. They are fire-and-forget and must be called only by whoever
// may still speak for the message.
type Delivery struct {
	Stored
	Attempt int // from 1
	Acker
}

// Acker settles a delivery.
type Acker interface {
	Ack()
	Nak(delay time.Duration)
	InProgress()
	Term(reason string)
}

// Clock is the time as an actor sees it. Only differences matter: instants that others read come from the broker.
type Clock interface {
	Now() time.Time
	// After delivers once, d from now; stop releases it early.
	After(d time.Duration) (fired <-chan time.Time, stop func())
}

// SystemClock is the machine's own clock.
type SystemClock struct{}

func (SystemClock) Now() time.Time { return time.Now() }

func (SystemClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
