package view

import (
	"slices"
	"strconv"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Events projects a log, in order and from its beginning, into the events that ADK's clients know: each accepted message
// (author user), each answer of a model (author its agent), each turn's responses merged into one event of role user in
// call order, and the problem a run failed with. Ids are the log event's id and an index. Function calls and responses carry
// the fabric's call ids. Runs are named by the input that started them.
//
// A turn's responses are shown once none of its calls is running, or when its session parks or a person decides before
// that. Calls that people are asked about stand in it with ADK's placeholder, which session.MetadataPlaceholders lists,
// and the questions follow as one event of role model with a function call each. Whatever comes of such a call later has
// events of its own: decisions (author user), responses, further questions.
//
// reply is the subject to publish the decision on a confirmation on; nil leaves it out.
func Events(log []Entry, reply func(confirmation string) string) []*session.Event {
	p := projector{reply: reply}
	for _, e := range log {
		p.fold(e)
	}
	return p.out
}

// Projection is Events for a log that grows: what each of its events adds.
type Projection struct{ p projector }

// NewProjection begins with an empty log.
func NewProjection(reply func(confirmation string) string) *Projection {
	return &Projection{projector{reply: reply}}
}

// Fold takes the log's next event and returns what people see of it.
func (p *Projection) Fold(e Entry) []*session.Event {
	p.p.out = nil
	p.p.fold(e)
	return p.p.out
}

// projector holds what the projection must remember from one log event to the next.
type projector struct {
	reply   func(string) string
	out     []*session.Event
	run     string      // input that started the run; empty between runs
	rests   bool        // the session is parked after the agent's last word: a message begins another run
	agent   string      // who spoke last
	turns   []*turnView // with calls that have not ended
	talking bool        // the last turn has no calls
}

func (p *projector) fold(e Entry) {
	ev, index := &e.Event, 0
	show := func(out session.Event) {
		out.ID = ev.ID + ":" + strconv.Itoa(index)
		out.InvocationID = p.run
		index++
		p.out = append(p.out, &out)
	}
	p.answers(ev.Answers, false) // what a decision finds when it comes; its own consequences come behind it
	for i := range ev.Inputs {
		p.input(ev.At, &ev.Inputs[i], show)
	}
	p.answers(ev.Answers, true)
	p.responses(ev.At, false, show)
	if ev.Turn != nil {
		p.turn(ev, show)
	}
	if ev.Stop != nil && ev.Stop.Kind != protocol.StopDrained {
		p.responses(ev.At, true, show)
		p.stop(ev, show)
	}
}

// answers brings answers to their calls: those of calls that people are asked about when asked is set, else the others.
func (p *projector) answers(answers []protocol.Answer, asked bool) {
	for i := range answers {
		for _, t := range p.turns {
			if c := t.call(answers[i].Call); c != nil && asked == (c.asks != nil) {
				c.answered(&answers[i])
				if p.run == "" { // the end of what an earlier run left pending
					p.run = t.run
				}
			}
		}
	}
}

// responses shows what is new; with now also of turns whose calls are still running.
func (p *projector) responses(at int64, now bool, show func(session.Event)) {
	p.turns = slices.DeleteFunc(p.turns, func(t *turnView) bool {
		t.responses(now, at, p.reply, show)
		return t.merged && !slices.ContainsFunc(t.calls, func(c *calling) bool { return !c.ended() })
	})
}

func (p *projector) stop(ev *protocol.Event, show func(session.Event)) {
	problem := ev.Stop.Problem
	if problem == nil && ev.Stop.Kind == protocol.StopCancelled {
		problem = &protocol.Problem{Code: protocol.CodeCancelled, Message: "the run was cancelled"}
	}
	if problem != nil {
		show(session.Event{Author: p.agent, Timestamp: millis(ev.At), LLMResponse: model.LLMResponse{
			ErrorCode: string(problem.Code), ErrorMessage: problem.Message,
		}})
	}
	if ev.Stop.Kind == protocol.StopParked {
		p.rests = p.talking
		return
	}
	p.run = ""
	p.turns = slices.DeleteFunc(p.turns, func(t *turnView) bool { // what is pending may still come to an end
		return !slices.ContainsFunc(t.calls, func(c *calling) bool { return c.answer != nil && c.answer.Outcome == protocol.OutcomePending })
	})
}

func (p *projector) input(at int64, in *protocol.FoldedInput, show func(session.Event)) {
	if in.Refused != nil || in.Kind == protocol.InputDelete {
		return
	}
	if p.run == "" || p.rests && in.Kind == protocol.InputMessage {
		p.run, p.rests = in.ID, false
	}
	switch {
	case in.Kind == protocol.InputMessage:
		show(session.Event{
			Author: "user", Timestamp: millis(in.Sent),
			LLMResponse: model.LLMResponse{Content: Content(in.Content)},
			Actions:     session.EventActions{StateDelta: values(in.StateDelta)},
		})
	case in.Kind == protocol.InputDecision && in.Decision != nil:
		p.decision(at, in, show)
	}
}

// decision shows a person's word behind the question that it is about, and the question that edited arguments make.
func (p *projector) decision(at int64, in *protocol.FoldedInput, show func(session.Event)) {
	var of *turnView
	var about *calling
	for _, t := range p.turns {
		for _, c := range t.calls {
			if c.asks != nil && c.asks.ID == in.Decision.Confirmation {
				of, about = t, c
			}
		}
	}
	if about != nil && about.unasked {
		of.responses(true, at, p.reply, show)
	}
	show(session.Event{
		Author: "user", Timestamp: millis(in.Sent),
		LLMResponse: model.LLMResponse{
			Content:        &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{decided(in.Decision)}},
			CustomMetadata: map[string]any{session.MetadataApprover: in.Client},
		},
	})
	if about != nil && in.Decision.Asks != nil {
		about.args = in.Decision.Args
		about.asks, about.unasked = in.Decision.Asks, true
		of.questions(at, p.reply, show)
	}
}

func (p *projector) turn(ev *protocol.Event, show func(session.Event)) {
	t := ev.Turn
	p.agent = t.Agent
	out := session.Event{
		Author: t.Agent, Timestamp: millis(ev.At),
		LLMResponse: model.LLMResponse{
			Content: turnContent(t), ModelVersion: t.Model, FinishReason: genai.FinishReason(t.Finish), UsageMetadata: usage(t.Usage),
		},
		Actions: session.EventActions{StateDelta: values(t.StateDelta)},
	}
	for _, c := range t.Calls {
		if c.LongRunning {
			out.LongRunningToolIDs = append(out.LongRunningToolIDs, c.ID)
		}
	}
	show(out)
	if after := Content(t.After); after != nil {
		show(session.Event{Author: t.Agent, Timestamp: millis(ev.At), LLMResponse: model.LLMResponse{Content: after}})
	}
	p.talking = len(t.Calls) == 0
	if v := newTurnView(t, out.Content); v != nil {
		v.run = p.run
		p.turns = append(p.turns, v)
	}
	p.responses(ev.At, false, show)
}

// turnContent is what the model said with the fabric's call ids. A client's call has no content: the call itself is shown.
func turnContent(t *protocol.Turn) *genai.Content {
	c := Content(t.Content)
	if c == nil && len(t.Calls) > 0 {
		c = &genai.Content{Role: genai.RoleModel}
		for _, call := range t.Calls {
			c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Tool, Args: object(call.Args)}})
		}
		return c
	}
	if c == nil {
		return nil
	}
	next := 0
	for _, part := range c.Parts {
		if part == nil || part.FunctionCall == nil || next == len(t.Calls) {
			continue
		}
		part.FunctionCall.ID = t.Calls[next].ID
		next++
	}
	return c
}

func usage(u *protocol.Usage) *genai.GenerateContentResponseUsageMetadata {
	if u == nil {
		return nil
	}
	return &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount: int32(u.Prompt), CandidatesTokenCount: int32(u.Candidates), ThoughtsTokenCount: int32(u.Thoughts),
		CachedContentTokenCount: int32(u.Cached), TotalTokenCount: int32(u.Total),
	}
}
