package natswire

import (
	"context"
	"time"
)

// StreamState is what a stream holds, and how safely.
type StreamState struct {
	Stream    string    `json:"stream"`
	Messages  uint64    `json:"messages"`
	Bytes     uint64    `json:"bytes"`
	LastSeq   uint64    `json:"last_seq"`
	MaxBytes  int64     `json:"max_bytes"` // -1 is no limit
	Consumers int       `json:"consumers"`
	Replicas  int       `json:"replicas"`
	Now       time.Time `json:"now"` // the broker's clock when it answered
}

// StreamState asks for the state of a stream; code not_found when it does not exist.
func (c *Conn) StreamState(ctx context.Context, stream string) (StreamState, error) {
	var info struct {
		Config struct {
			MaxBytes int64 `json:"max_bytes"`
			Replicas int   `json:"num_replicas"`
		} `json:"config"`
		State struct {
			Messages  uint64 `json:"messages"`
			Bytes     uint64 `json:"bytes"`
			LastSeq   uint64 `json:"last_seq"`
			Consumers int    `json:"consumer_count"`
		} `json:"state"`
		Now time.Time `json:"ts"`
	}
	if err := c.call(ctx, "STREAM.INFO."+stream, "ask for the stream "+stream, nil, &info); err != nil {
		return StreamState{}, err
	}
	return StreamState{
		Stream: stream, Messages: info.State.Messages, Bytes: info.State.Bytes, LastSeq: info.State.LastSeq, MaxBytes: info.Config.MaxBytes,
		Consumers: info.State.Consumers, Replicas: info.Config.Replicas, Now: info.Now,
	}, nil
}

// Durables lists the names of a stream's consumers, in no order.
func (c *Conn) Durables(ctx context.Context, stream string) ([]string, error) {
	var all []string
	for {
		var page struct {
			Total     int      `json:"total"`
			Consumers []string `json:"consumers"`
		}
		in := map[string]int{"offset": len(all)}
		if err := c.call(ctx, "CONSUMER.NAMES."+stream, "list the consumers of "+stream, in, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Consumers...)
		if len(page.Consumers) == 0 || len(all) >= page.Total {
			return all, nil
		}
	}
}
