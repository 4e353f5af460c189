package view

import (
	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Parked is what is listed of a call that waits, with the subject to publish what it waits for on.
func Parked(n natswire.Names, s *fold.State, w fold.Wait) protocol.Parked {
	c := w.Call
	p := protocol.Parked{
		V: protocol.Version, App: s.App, Session: s.Session, User: s.User, Agent: w.Agent, Call: c.ID, Round: w.Round.N,
		Tool: c.Tool, Digest: c.Digest, Effect: c.Effect, Args: c.Args, Since: w.Round.At, Until: w.Until, Seq: w.Seq,
		Confirmation: w.Round.Asks, Approvers: w.Round.Agreed, Reply: n.WakeSubject(s.App, c.Tool, s.Session, c.ID, w.Round.N),
	}
	if q := w.Round.Asks; q != nil {
		p.Reply = n.ApprovalSubject(s.App, s.Session, q.ID, "*")
	}
	if s.Run != nil {
		p.Trace = s.Run.Trace
	}
	return p
}
