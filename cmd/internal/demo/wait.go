package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Waited is the second half of a tour: calls that wait for a person and for a result from outside.
type Waited struct {
	Request   string   `json:"request"`
	Line      string   `json:"line"` // to be published and printed
	Call      string   `json:"call"` // that a person had to agree to
	Subject   string   `json:"subject"`
	Old       Process  `json:"old_coordinator"` // killed while the session waited
	New       Process  `json:"new_coordinator"`
	Drivers   []string `json:"drivers"`  // ids of the coordinators that adopted the session, in order, from the request on
	Early     []Effect `json:"early"`    // of the call, before anybody agreed
	Approver  string   `json:"approver"` // in the log
	Published string   `json:"published"`

	Print   string        `json:"print"` // the call whose result came from outside
	Sheets  int           `json:"sheets"`
	From    string        `json:"from"`   // who gave the result, in the log
	Second  protocol.Code `json:"second"` // what a second result was refused with
	Printed string        `json:"printed"`
}

// approver is who agrees in the tour.
const approver = "you"

// waits makes the second half.
type waits struct {
	Config
	conn   *natswire.Conn
	client *client.Client
	fleet  *fleet
	tour   *Tour
}

// run asks for something that needs a person's word and for something that takes long, replaces the coordinator while
// the session waits, agrees by a publish, and gives the result of what took long.
func (w *waits) run(ctx context.Context) error {
	t := w.tour
	lines := strings.Split(t.Answer, "\n")
	t.Waited.Line = lines[len(lines)-1]
	t.Waited.Request = request(t.Waited.Line)
	r, err := w.client.Send(ctx, Agent, t.Session, client.Text(t.Waited.Request))
	if err != nil {
		return err
	}
	w.Show.Asked(t.Dir, t.Waited.Request)
	var end uint64
	for u, err := range w.client.Follow(ctx, r.App, r.Session, r.InputID) {
		switch {
		case err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable:
			return err
		case u.Outcome != nil:
			if u.Outcome.Problem != nil {
				return u.Outcome.Err()
			}
			t.Waited.Published, end = u.Outcome.Text, u.Outcome.Seq
		case u.Waiting != nil:
			if err := w.decide(ctx, u.Waiting); err != nil {
				return err
			}
		case err == nil:
			w.Show.Update(u)
		}
	}
	if end == 0 {
		return protocol.ContextError(ctx)
	}
	w.Show.Answered(t.Waited.Published)
	return w.finish(ctx, end)
}

// decide replaces the coordinator of a session that waits, and agrees to what it waits for.
func (w *waits) decide(ctx context.Context, waiting *client.Waiting) error {
	seen := &w.tour.Waited
	i := slices.IndexFunc(waiting.Calls, func(p client.Parked) bool { return p.Confirmation != nil })
	if i < 0 || seen.Call != "" {
		return protocol.Errorf(protocol.CodeInternal, "%s, which is not what the tour prepared", waiting)
	}
	p, err := w.listed(ctx, waiting.Calls[i].Call)
	if err != nil {
		return err
	}
	seen.Call = p.Call
	w.Show.Waits(p)
	if err := w.replace(); err != nil {
		return err
	}
	if seen.Early, err = w.effects(p.Call); err != nil {
		return err
	}
	seen.Subject = w.conn.Names().ApprovalSubject(p.App, p.Session, p.Confirmation.ID, approver)
	const word = `{"confirmed":true}`
	w.Show.Does("nats", "pub", seen.Subject, word)
	_, err = w.conn.Publish(ctx, natswire.Msg{Subject: seen.Subject, Data: []byte(word)})
	return err
}

// listed waits until a call is in the index of what waits: its session has let go of everything then but its guard.
func (w *waits) listed(ctx context.Context, call string) (client.Parked, error) {
	for {
		p, err := w.client.ParkedCall(ctx, Agent, w.tour.Session, call)
		if protocol.CodeOf(err) != protocol.CodeNotFound {
			return p, err
		}
		if err := natswire.Sleep(ctx, natswire.SystemClock{}, 20*time.Millisecond); err != nil {
			return p, err
		}
	}
}

// replace kills the coordinator and starts another one.
func (w *waits) replace() error {
	i := slices.IndexFunc(w.fleet.all, func(p *process) bool { return p.Name == coordinator })
	old := w.fleet.all[i]
	if err := w.fleet.kill(old); err != nil {
		return err
	}
	young, err := w.fleet.start(coordinator, nil, old.Args...)
	if err != nil {
		return err
	}
	w.tour.Waited.Old, w.tour.Waited.New = old.Process, young.Process
	w.tour.Processes = append(w.tour.Processes, young.Process)
	w.Show.Restarted(old.Process, young.Process)
	return nil
}

func (w *waits) effects(call string) ([]Effect, error) {
	all, err := ledger(w.file("ledger.jsonl")).read()
	return slices.DeleteFunc(all, func(e Effect) bool { return e.Key != call }), err
}

// finish gives the result of the print from outside, twice, and waits for what the agent says to it. The run that ordered it
// ended with the event end.
func (w *waits) finish(ctx context.Context, end uint64) error {
	seen := &w.tour.Waited
	page, err := w.client.Parked(ctx, client.ParkedFilter{App: Agent, Session: w.tour.Session, Tool: toolPrint}, 0, 0)
	for ; err == nil && len(page.Parked) == 0; page, err = w.client.Parked(ctx, client.ParkedFilter{App: Agent, Session: w.tour.Session, Tool: toolPrint}, 0, 0) {
		err = natswire.Sleep(ctx, natswire.SystemClock{}, 20*time.Millisecond)
	}
	if err != nil {
		return err
	}
	p := page.Parked[0]
	seen.Print, seen.Sheets = p.Call, len(seen.Line)
	result := protocol.Result{Outcome: protocol.OutcomeCompleted, Value: fmt.Appendf(nil, `{"sheets":%d}`, seen.Sheets)}
	w.Show.Waits(p)
	w.Show.Does("toolfabric", "calls", "complete", p.Call, "--result", string(result.Value))
	if _, err := w.client.Complete(ctx, p, result); err != nil {
		return err
	}
	_, err = w.client.Complete(ctx, p, result)
	seen.Second = protocol.CodeOf(err)
	for u, err := range w.client.Watch(ctx, Agent, w.tour.Session, end+1) {
		switch {
		case err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable:
			return err
		case err != nil:
			continue
		}
		w.Show.Update(u)
		if u.Entry == nil {
			continue
		}
		if turn := u.Entry.Event.Turn; turn != nil {
			seen.Printed = text(turn.Content)
		}
		if stop := u.Entry.Event.Stop; stop != nil && stop.Kind == protocol.StopDone {
			w.Show.Answered(seen.Printed)
			return nil
		}
	}
	return protocol.ContextError(ctx)
}

// text is what a turn says.
func text(content json.RawMessage) string {
	var c genai.Content
	if json.Unmarshal(content, &c) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range c.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
