package natswire

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// getRequest is the body of MSG.GET and DIRECT.GET.
type getRequest struct {
	Seq       uint64   `json:"seq,omitempty"`
	LastFor   string   `json:"last_by_subj,omitempty"`
	NextFor   string   `json:"next_by_subj,omitempty"`
	Batch     int      `json:"batch,omitempty"`
	MultiLast []string `json:"multi_last,omitempty"`
	UpToSeq   uint64   `json:"up_to_seq,omitempty"`
}

// Last implements Bus.
func (c *Conn) Last(ctx context.Context, stream, subject string) (Stored, error) {
	return c.leaderGet(ctx, stream, "read the last message of "+subject, getRequest{LastFor: subject})
}

// Next implements Bus.
func (c *Conn) Next(ctx context.Context, stream, subject string, from uint64) (Stored, error) {
	return c.leaderGet(ctx, stream, "read the next message of "+subject, getRequest{Seq: max(from, 1), NextFor: subject})
}

// At implements Bus.
func (c *Conn) At(ctx context.Context, stream string, seq uint64) (Stored, error) {
	return c.leaderGet(ctx, stream, "read message "+strconv.FormatUint(seq, 10)+" of "+stream, getRequest{Seq: seq})
}

// leaderGet reads from the stream's leader: a direct get of a replicated stream misses what was acked a moment ago.
func (c *Conn) leaderGet(ctx context.Context, stream, what string, in getRequest) (Stored, error) {
	var out struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := c.call(ctx, "STREAM.MSG.GET."+stream, what, in, &out); err != nil {
		return Stored{}, err
	}
	m := out.Message
	s := Stored{Subject: m.Subject, Seq: m.Seq, Data: m.Data, Time: m.Time}
	if len(m.Header) > 0 {
		h, err := nats.DecodeHeadersMsg(m.Header)
		if err != nil {
			return Stored{}, protocol.Wrap(err, protocol.CodeInternal, "%s: headers of message %d", what, m.Seq)
		}
		s.Header = header(h)
	}
	return s, nil
}

// Read implements Bus.
func (c *Conn) Read(ctx context.Context, stream, subject string, from uint64, limit int) ([]Stored, error) {
	var all []Stored
	from = max(from, 1)
	// The server ends a batch early when it has sent its share of bytes.
	for len(all) < limit {
		part, left, err := c.directGet(ctx, stream, getRequest{Seq: from, NextFor: subject, Batch: limit - len(all)})
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if left == 0 || len(part) == 0 {
			break
		}
		from = part[len(part)-1].Seq + 1
	}
	return all, nil
}

// multiLastLimit is how many subjects the server answers for in one request.
const multiLastLimit = 1024

// Latest implements Bus. Beyond 1024 subjects it also needs the right to ask for the stream's state.
func (c *Conn) Latest(ctx context.Context, stream, subject string) ([]Stored, error) {
	all, err := c.lastOf(ctx, stream, []string{subject})
	if e, ok := asAPIError(err); !ok || e.Status != tooManyResults {
		return all, err
	}
	subjects, err := c.subjects(ctx, stream, subject)
	if err != nil {
		return nil, err
	}
	all = nil
	for part := range slices.Chunk(subjects, multiLastLimit) {
		some, err := c.lastOf(ctx, stream, part)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b Stored) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return all, nil
}

func (c *Conn) lastOf(ctx context.Context, stream string, subjects []string) ([]Stored, error) {
	var all []Stored
	in := getRequest{MultiLast: subjects}
	for {
		part, left, err := c.directGet(ctx, stream, in)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if left == 0 || len(part) == 0 {
			return all, nil
		}
		in.Seq = part[len(part)-1].Seq + 1
	}
}

// subjects lists the subjects in a stream that match a wildcard.
func (c *Conn) subjects(ctx context.Context, stream, filter string) ([]string, error) {
	var all []string
	for {
		in := struct {
			Filter string `json:"subjects_filter"`
			Offset int    `json:"offset,omitempty"`
		}{filter, len(all)}
		var out struct {
			Total int `json:"total"`
			State struct {
				Subjects map[string]uint64 `json:"subjects"`
			} `json:"state"`
		}
		asking, cancel := withDeadline(ctx)
		err := c.call(asking, "STREAM.INFO."+stream, "list the subjects of "+stream, in, &out)
		cancel()
		if err != nil {
			return nil, err
		}
		for s := range out.State.Subjects {
			all = append(all, s)
		}
		if len(out.State.Subjects) == 0 || len(all) >= out.Total {
			return all, nil
		}
	}
}

const (
	noMessages     = 404
	tooManyResults = 413
)

// directGet reads a batch from any replica. left is how many more matched when the server ended the batch. A read of many
// batches may take long; each of them ends in time.
func (c *Conn) directGet(ctx context.Context, stream string, in getRequest) (all []Stored, left uint64, err error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	data, err := json.Marshal(in)
	if err != nil {
		return nil, 0, protocol.Wrap(err, protocol.CodeInternal, "encode a read of %s", stream)
	}
	request := encode(Msg{Subject: apiPrefix + "DIRECT.GET." + stream, Data: data})
	end, err := c.exchange(ctx, request, func(w *waiter, m *nats.Msg) {
		if m.Header.Get("Nats-Sequence") == "" {
			w.answer(answer{msg: m})
			return
		}
		all = append(all, directStored(m))
	})
	if err != nil {
		return nil, 0, err
	}
	switch status, _ := strconv.Atoi(end.Header.Get("Status")); status {
	case 204:
		left, _ = strconv.ParseUint(end.Header.Get("Nats-Num-Pending"), 10, 64)
		return all, left, nil
	case noMessages:
		return all, 0, nil
	case 503:
		return nil, 0, protocol.Errorf(protocol.CodeUnreachable, "read %s: nobody answers; the stream does not exist, elects a leader or has no direct reads", stream)
	default:
		e := &apiError{Status: status, Description: end.Header.Get("Description")}
		return nil, 0, e.refused("read " + stream)
	}
}

func directStored(m *nats.Msg) Stored {
	h := header(m.Header)
	s := Stored{Subject: h["Nats-Subject"], Data: m.Data}
	s.Seq, _ = strconv.ParseUint(h["Nats-Sequence"], 10, 64)
	s.Time, _ = time.Parse(time.RFC3339Nano, h["Nats-Time-Stamp"])
	for _, k := range [...]string{"Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Stream", "Nats-Num-Pending", "Nats-Last-Sequence"} {
		delete(h, k)
	}
	if len(h) > 0 {
		s.Header = h
	}
	return s
}
