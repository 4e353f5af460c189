package natswire

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// Objects are kept as the object stores of NATS are (ADR-20), so that its own tools read them: chunks on $O.<bucket>.C.<id>
// and a record of them on $O.<bucket>.M.<name>. They are read and written here over the Bus itself, because the client
// library makes a consumer for each read and reports a missing permission as a timeout.
const (
	objectChunk  = 128 << 10
	objectDigest = "SHA-256="
)

type objectInfo struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Options     objOptions `json:"options"`
	Bucket      string     `json:"bucket"`
	ID          string     `json:"nuid"`
	Size        uint64     `json:"size"`
	Time        time.Time  `json:"mtime"` // the broker's, of the message that holds it
	Chunks      int        `json:"chunks"`
	Digest      string     `json:"digest,omitempty"`
	Deleted     bool       `json:"deleted,omitempty"`
}

type objOptions struct {
	ChunkSize int `json:"max_chunk_size,omitempty"`
}

// ObjectStream is the stream behind the object store.
func (n Names) ObjectStream() string { return Bucket{name: n.Objects()}.stream() }

// PutObject implements Bus.
func (c *Conn) PutObject(ctx context.Context, name string, data []byte) error {
	b := Bucket{c, c.names.Objects()}
	old, _, err := b.info(ctx, name)
	switch {
	case err == nil && !old.Deleted && old.Digest == digestOf(data):
		if _, err := b.chunks(ctx, old); err == nil {
			return nil
		}
	case err != nil && protocol.CodeOf(err) != protocol.CodeNotFound:
		return err
	}
	return b.store(ctx, objectInfo{Name: name}, data, old, nil)
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return objectDigest + base64.URLEncoding.EncodeToString(sum[:])
}

// store writes the chunks of an object, then the record that makes them one, and removes the chunks of the old one. expect
// is the sequence of the old one's record, 0 for none; nil expects nothing.
func (b Bucket) store(ctx context.Context, info objectInfo, data []byte, old objectInfo, expect *uint64) error {
	info.Options, info.Bucket, info.ID = objOptions{ChunkSize: objectChunk}, b.name, protocol.NewID()
	info.Size, info.Digest = uint64(len(data)), digestOf(data)
	for chunk := range slices.Chunk(data, objectChunk) {
		if _, err := b.c.Publish(ctx, Msg{Subject: b.chunkSubject(info.ID), Data: chunk}); err != nil {
			return err
		}
		info.Chunks++
	}
	record, err := json.Marshal(info)
	if err != nil {
		return protocol.Wrap(err, protocol.CodeInternal, "encode the record of object %s", info.Name)
	}
	rollup := Header{headerRollup: "sub"}
	if _, err := b.c.Publish(ctx, Msg{Subject: b.record(info.Name), Header: rollup, Data: record, Expect: expect}); err != nil {
		if protocol.CodeOf(err) == protocol.CodeFenced {
			_ = b.c.Purge(ctx, b.stream(), b.chunkSubject(info.ID), 0) // they are nobody's
		}
		return err
	}
	if old.ID != "" && !old.Deleted {
		return b.c.Purge(ctx, b.stream(), b.chunkSubject(old.ID), 0)
	}
	return nil
}

// GetObject implements Bus. What is returned has the digest it was stored with.
func (c *Conn) GetObject(ctx context.Context, name string) ([]byte, error) {
	data, _, err := Bucket{c, c.names.Objects()}.Get(ctx, name)
	return data, err
}

// info is the record of an object, deleted ones included, and the sequence of the message that holds it.
func (b Bucket) info(ctx context.Context, name string) (objectInfo, uint64, error) {
	m, err := b.c.Last(ctx, b.stream(), b.record(name))
	if err != nil {
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			err = protocol.Wrap(err, protocol.CodeNotFound, "there is no object %s", name)
		}
		return objectInfo{}, 0, err
	}
	var info objectInfo
	if err := json.Unmarshal(m.Data, &info); err != nil {
		return objectInfo{}, m.Seq, protocol.Wrap(err, protocol.CodeInternal, "the record of object %s is not JSON", name)
	}
	info.Time = m.Time
	return info, m.Seq, nil
}

func (b Bucket) chunks(ctx context.Context, info objectInfo) ([]byte, error) {
	stream, subject := b.stream(), b.chunkSubject(info.ID)
	var parts []Stored
	if info.Chunks > 0 {
		var err error
		if parts, err = b.c.Read(ctx, stream, subject, 0, info.Chunks); err != nil {
			return nil, err
		}
	}
	for len(parts) < info.Chunks { // the replica that answered is behind: the leader has the rest
		from := uint64(1)
		if len(parts) > 0 {
			from = parts[len(parts)-1].Seq + 1
		}
		part, err := b.c.leaderGet(ctx, stream, "read object "+info.Name, getRequest{Seq: from, NextFor: subject})
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	data := make([]byte, 0, min(info.Size, 64<<20))
	for _, p := range parts {
		data = append(data, p.Data...)
	}
	if subtle.ConstantTimeCompare([]byte(digestOf(data)), []byte(info.Digest)) != 1 {
		return nil, protocol.Errorf(protocol.CodeNotFound, "object %s is incomplete: its digest does not match", info.Name)
	}
	return data, nil
}
