package chaos

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

// voices speaks for people and for the outside until it is stopped: every open question in a log is agreed to, and every
// order in the ledger gets its result, as soon as they are seen, by a publish each.
func (p *place) voices(pt point) (stop func()) {
	if pt.say != "ask" && pt.say != "order" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	var speaking sync.WaitGroup
	speaking.Go(func() {
		for {
			p.agree(ctx)
			p.finish(ctx)
			if natswire.Sleep(ctx, natswire.SystemClock{}, 50*time.Millisecond) != nil {
				return
			}
		}
	})
	return func() { cancel(); speaking.Wait() }
}

// agree approves what logs ask.
func (p *place) agree(ctx context.Context) {
	n := p.conn.Names()
	events, err := p.conn.Read(ctx, n.Log(), n.LogFilter("helper"), 1, 10_000)
	if err != nil {
		return // it is tried again
	}
	for _, m := range events {
		ev, err := protocol.DecodeEvent(m.Data)
		if err != nil {
			p.t.Errorf("event %d cannot be read: %v", m.Seq, err)
			continue
		}
		if ev.Turn == nil {
			continue
		}
		for _, c := range ev.Turn.Calls {
			if q := c.Confirmation; q != nil && !p.spoken[q.ID] {
				session := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
				_, err := p.conn.Publish(ctx, natswire.Msg{Subject: n.ApprovalSubject("helper", session, q.ID, "ann"), Data: []byte(`{"confirmed":true}`)})
				p.spoken[q.ID] = err == nil
			}
		}
	}
}

// finish gives orders their results. The second one to speak for an order is refused, as the mailbox takes one.
func (p *place) finish(ctx context.Context) {
	for _, e := range p.effects() {
		if e.Handle == "" || p.spoken[e.Handle] {
			continue
		}
		var args struct{ Text string }
		if err := json.Unmarshal(e.Args, &args); err != nil {
			p.t.Error(err)
		}
		data, err := protocol.Encode(protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Worker: "outside",
			Value: json.RawMessage(value(e.Tool, args.Text) + `"}`)})
		if err != nil {
			p.t.Error(err)
			continue
		}
		_, err = p.conn.Publish(ctx, natswire.Msg{Subject: p.conn.Names().Namespace() + ".wake." + e.Handle, Data: data})
		p.spoken[e.Handle] = err == nil || protocol.CodeOf(err) == protocol.CodeAnswered
	}
}

// listen keeps the receipts that approvers are sent.
func (p *place) listen() {
	p.t.Helper()
	_, err := p.conn.Subscribe(p.conn.Names().ReceiptSubject("*", "*", "*"), func(m natswire.Msg) {
		var r protocol.Receipt
		if err := json.Unmarshal(m.Data, &r); err != nil {
			p.t.Errorf("a receipt that cannot be read: %s", m.Data)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, sim.Receipted{Receipt: r})
	})
	if err != nil {
		p.t.Fatal(err)
	}
}
