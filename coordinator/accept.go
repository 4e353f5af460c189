package coordinator

import (
	"context"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// accept validates a new declaration and pins it. Two coordinators that accept the same one store the same.
func (t *catalogue) accept(ctx context.Context, r protocol.Registration, digest string) (*accepted, error) {
	d := r.Declaration
	if _, err := invoke.CompileSchema(d.Parameters); err != nil {
		return nil, err
	}
	data, err := protocol.Encode(protocol.Accepted{V: protocol.Version, Declaration: d, AcceptedAt: t.c.now(), Worker: r.Worker})
	if err != nil {
		return nil, err
	}
	seq, err := t.pin(ctx, t.c.cfg.Names.ToolSubject(d.Name, digest), data)
	if err != nil {
		return nil, err
	}
	t.c.cfg.Logger.Info("a tool is accepted", "tool", d.Name, "digest", digest[:12], "effect", d.Class(), "worker", r.Worker)
	return newAccepted(d, digest, seq), nil
}

// pin stores a declaration unless it stands there already: a version that is stored anew would count as the newest. A key
// that was deleted holds a marker, which the declaration replaces.
func (t *catalogue) pin(ctx context.Context, subject string, data []byte) (uint64, error) {
	bus, expect := t.c.cfg.Bus, uint64(0)
	ack, err := bus.Publish(ctx, natswire.Msg{Subject: subject, Data: data, Expect: &expect})
	if protocol.CodeOf(err) != protocol.CodeFenced {
		return ack.Seq, err
	}
	kept, err := bus.Last(ctx, t.c.cfg.Names.ToolsStream(), subject)
	if err != nil || len(kept.Data) > 0 {
		return kept.Seq, err
	}
	ack, err = bus.Publish(ctx, natswire.Msg{Subject: subject, Data: data, Expect: &kept.Seq})
	return ack.Seq, err
}

// refuse says why something is not accepted, once for what stays wrong however often it is repeated.
func (t *catalogue) refuse(what, kind, name string, err error) {
	t.mu.Lock()
	said := t.refused[what]
	switch protocol.CodeOf(err) {
	case protocol.CodeBadDeclaration, protocol.CodeBadMessage, protocol.CodeBadName, protocol.CodeBadID, protocol.CodeTooLarge, protocol.CodeUnsupportedVersion:
		t.refused[what] = true
	}
	t.mu.Unlock()
	if !said {
		t.c.cfg.Logger.Warn("a registration is refused", kind, name, "error", err)
	}
}
