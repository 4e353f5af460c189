package natswire

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// apiPrefix begins the subjects of the JetStream API.
const (
	apiPrefix = "$JS.API."
	apiInfo   = apiPrefix + "INFO"
)

// call makes one request of the JetStream API and decodes its answer into out, which may be nil. what says in an error
// which operation on which thing failed.
func (c *Conn) call(ctx context.Context, subject, what string, in, out any) error {
	var data []byte
	if in != nil {
		var err error
		if data, err = json.Marshal(in); err != nil {
			return protocol.Wrap(err, protocol.CodeInternal, "%s: encode the request", what)
		}
	}
	for try := 1; ; try++ {
		reply, err := c.ask(ctx, encode(Msg{Subject: apiPrefix + subject, Data: data}))
		if err != nil {
			return err
		}
		if !noResponders(reply) {
			return readAPI(reply.Data, what, out)
		}
		if try == electionTries {
			return protocol.Errorf(protocol.CodeUnreachable, "%s: JetStream does not answer; it is starting, elects a leader or is not enabled", what)
		}
		if err := pause(ctx, electionPause); err != nil {
			return err
		}
	}
}

var apiFailed = []byte(`"error"`)

func readAPI(data []byte, what string, out any) error {
	if bytes.Contains(data, apiFailed) {
		var failed struct {
			Error *apiError `json:"error"`
		}
		if err := json.Unmarshal(data, &failed); err != nil {
			return protocol.Wrap(err, protocol.CodeInternal, "%s: the broker's answer is not JSON", what)
		}
		if failed.Error != nil {
			return failed.Error.refused(what)
		}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return protocol.Wrap(err, protocol.CodeInternal, "%s: read the broker's answer", what)
	}
	return nil
}

// number is the JetStream error number in err's chain, 0 for none.
func number(err error) int {
	if e, ok := asAPIError(err); ok {
		return e.Number
	}
	return 0
}

// Purge implements Bus.
func (c *Conn) Purge(ctx context.Context, stream, subject string, keep uint64) error {
	in := struct {
		Filter string `json:"filter,omitempty"`
		Keep   uint64 `json:"keep,omitempty"`
	}{subject, keep}
	return c.call(ctx, "STREAM.PURGE."+stream, "purge "+subject+" in "+stream, in, nil)
}

// Remove implements Bus.
func (c *Conn) Remove(ctx context.Context, stream string, seq uint64) error {
	in := struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, true}
	err := c.call(ctx, "STREAM.MSG.DELETE."+stream, "remove a message of "+stream, in, nil)
	e, ok := asAPIError(err)
	if !ok {
		return err
	}
	switch e.Number {
	case jsNoMessage, jsMsgNotFoundSeq:
		return nil
	case jsDeleteFailed: // one number for "not there" and for "not allowed": only the text tells
		if strings.Contains(e.Description, "not permitted") {
			return protocol.Wrap(e, protocol.CodeForbidden, "the stream %s does not let go of single messages", stream)
		}
		return nil
	}
	return err
}

// EnsureConsumer implements Bus.
func (c *Conn) EnsureConsumer(ctx context.Context, want Consumer) error {
	what := "make the consumer " + want.Durable + " of " + want.Stream
	in := struct {
		Stream string         `json:"stream_name"`
		Config consumerConfig `json:"config"`
	}{want.Stream, configOf(want)}
	var made consumerInfo
	if err := c.call(ctx, "CONSUMER.CREATE."+want.Stream+"."+want.Durable+"."+want.Filter, what, in, &made); err != nil {
		return err
	}
	if made.Paused == want.Paused {
		return nil
	}
	var until struct {
		PauseUntil *time.Time `json:"pause_until,omitempty"`
	}
	if want.Paused {
		until.PauseUntil = new(time.Now().Add(pauseForever))
	}
	return c.call(ctx, "CONSUMER.PAUSE."+want.Stream+"."+want.Durable, what, until, nil)
}

// The broker pauses until an instant; this one is far enough.
const pauseForever = 100 * 365 * 24 * time.Hour

// DeleteConsumer removes a durable. Its pull subscriptions are lost with code consumer_gone; what waits stays in the stream.
// Idempotent.
func (c *Conn) DeleteConsumer(ctx context.Context, stream, durable string) error {
	err := c.call(ctx, "CONSUMER.DELETE."+stream+"."+durable, "delete the consumer "+durable+" of "+stream, nil, nil)
	if number(err) == jsConsumerNotFound {
		return nil
	}
	return err
}

// ConsumerState implements Bus.
func (c *Conn) ConsumerState(ctx context.Context, stream, durable string) (ConsumerState, error) {
	var info consumerInfo
	if err := c.call(ctx, "CONSUMER.INFO."+stream+"."+durable, "read the consumer "+durable+" of "+stream, nil, &info); err != nil {
		return ConsumerState{}, err
	}
	return ConsumerState{
		Pending:    info.NumPending,
		AckPending: info.NumAckPending,
		Waiting:    info.NumWaiting,
		Delivered:  info.Delivered.Stream,
		Time:       info.Time,
		Config: Consumer{
			Stream: stream, Durable: durable, Filter: info.Config.FilterSubject,
			AckWait: info.Config.AckWait, MaxDeliver: info.Config.MaxDeliver, MaxAckPending: info.Config.MaxAckPending,
			Paused: info.Paused,
		},
	}, nil
}

// consumerConfig is a consumer as JetStream writes it. Durations are nanoseconds.
type consumerConfig struct {
	Durable       string        `json:"durable_name"`
	Name          string        `json:"name"`
	DeliverPolicy string        `json:"deliver_policy"`
	AckPolicy     string        `json:"ack_policy"`
	ReplayPolicy  string        `json:"replay_policy"`
	AckWait       time.Duration `json:"ack_wait,omitempty"`
	MaxDeliver    int           `json:"max_deliver,omitempty"`
	MaxAckPending int           `json:"max_ack_pending,omitempty"`
	FilterSubject string        `json:"filter_subject,omitempty"`
}

type consumerInfo struct {
	Config    consumerConfig `json:"config"`
	Delivered struct {
		Stream uint64 `json:"stream_seq"`
	} `json:"delivered"`
	Time          time.Time `json:"ts"`
	NumPending    uint64    `json:"num_pending"`
	NumAckPending int       `json:"num_ack_pending"`
	NumWaiting    int       `json:"num_waiting"`
	Paused        bool      `json:"paused"`
}

func configOf(c Consumer) consumerConfig {
	return consumerConfig{
		Durable: c.Durable, Name: c.Durable, DeliverPolicy: "all", AckPolicy: "explicit", ReplayPolicy: "instant",
		AckWait: c.AckWait, MaxDeliver: c.MaxDeliver, MaxAckPending: c.MaxAckPending, FilterSubject: c.Filter,
	}
}
