package natswire

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// Bucket is an object store of NATS. All methods may be called concurrently; their errors are those of Bus.
type Bucket struct {
	c    *Conn
	name string
}

// Object is an object as its record describes it.
type Object struct {
	Name        string
	Description string
	Size        int64  // bytes
	Digest      string // SHA-256 in lower-case hex; empty when the record has none
	Put         time.Time
}

// Skills is the object store of skills: whoever may write there tells agents what to do.
func (c *Conn) Skills() Bucket { return Bucket{c, c.names.Skills()} }

// SkillsStream is the stream behind the object store of skills.
func (n Names) SkillsStream() string { return Bucket{name: n.Skills()}.stream() }

func (b Bucket) stream() string { return "OBJ_" + b.name }

func (b Bucket) record(name string) string {
	return "$O." + b.name + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

func (b Bucket) chunkSubject(id string) string { return "$O." + b.name + ".C." + id }

// List returns the objects there are, by name. It may be stale.
func (b Bucket) List(ctx context.Context) ([]Object, error) {
	records, err := b.c.Latest(ctx, b.stream(), "$O."+b.name+".M.*")
	if err != nil {
		return nil, err
	}
	var list []Object
	for _, m := range records {
		var info objectInfo
		if json.Unmarshal(m.Data, &info) != nil || info.Deleted || m.Subject != b.record(info.Name) {
			continue // deleted, or no record
		}
		info.Time = m.Time
		list = append(list, info.object())
	}
	slices.SortFunc(list, func(x, y Object) int { return cmp.Compare(x.Name, y.Name) })
	return list, nil
}

func (i *objectInfo) object() Object {
	o := Object{Name: i.Name, Description: i.Description, Size: int64(i.Size), Put: i.Time}
	if encoded, ok := strings.CutPrefix(i.Digest, objectDigest); ok {
		if sum, err := base64.URLEncoding.DecodeString(encoded); err == nil {
			o.Digest = hex.EncodeToString(sum)
		}
	}
	return o
}

// Info reads the record of an object from the stream's leader; code not_found when there is none.
func (b Bucket) Info(ctx context.Context, name string) (Object, error) {
	info, _, err := b.info(ctx, name)
	if err == nil && info.Deleted {
		err = protocol.Errorf(protocol.CodeNotFound, "object %s was deleted", name)
	}
	if err != nil {
		return Object{}, err
	}
	return info.object(), nil
}

// Get reads an object whole. What is returned has the digest it was stored with; code not_found when it is missing or
// incomplete.
func (b Bucket) Get(ctx context.Context, name string) ([]byte, Object, error) {
	info, _, err := b.info(ctx, name)
	if err == nil && info.Deleted {
		err = protocol.Errorf(protocol.CodeNotFound, "object %s was deleted", name)
	}
	if err != nil {
		return nil, Object{}, err
	}
	data, err := b.chunks(ctx, info)
	return data, info.object(), err
}

// Put stores data under name in the place of what was there, and reports whether that was something else. Of several that
// put at once one wins; the others get code fenced.
func (b Bucket) Put(ctx context.Context, name, description string, data []byte) (changed bool, err error) {
	old, seq, err := b.info(ctx, name)
	switch {
	case err == nil && !old.Deleted && old.Digest == digestOf(data) && old.Description == description:
		if _, err := b.chunks(ctx, old); err == nil {
			return false, nil
		}
	case err != nil && protocol.CodeOf(err) != protocol.CodeNotFound:
		return false, err
	}
	return true, b.store(ctx, objectInfo{Name: name, Description: description}, data, old, &seq)
}

// Delete removes an object; code not_found when there is none.
func (b Bucket) Delete(ctx context.Context, name string) error {
	old, seq, err := b.info(ctx, name)
	if err != nil {
		return err
	}
	if err := b.c.Remove(ctx, b.stream(), seq); err != nil { // and not by name: another one may have come
		return err
	}
	return b.c.Purge(ctx, b.stream(), b.chunkSubject(old.ID), 0)
}
