package view

import (
	"encoding/json"
	"slices"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// turnView is a turn with calls that have not all been shown to their end.
type turnView struct {
	run    string
	agent  string
	calls  []*calling
	merged bool // its first event of responses was shown, or is none
}

// calling is one call as far as it was shown.
type calling struct {
	call      protocol.Call
	args      json.RawMessage // edits included
	signature []byte          // thought signature of its part
	answer    *protocol.Answer
	asks      *protocol.Confirmation // the question that is open; nil for none
	untold    bool                   // answer was not shown
	unasked   bool                   // asks was not shown
}

// newTurnView reads a turn's calls; nil for a turn without any.
func newTurnView(t *protocol.Turn, content *genai.Content) *turnView {
	if len(t.Calls) == 0 {
		return nil
	}
	v := &turnView{agent: t.Agent}
	for _, c := range t.Calls {
		one := &calling{call: c, args: c.Args}
		switch {
		case c.Recorded() != nil:
			one.answer, one.untold = &protocol.Answer{Call: c.ID, Result: *c.Recorded()}, true
		case c.Verdict == protocol.VerdictAsk && c.Confirmation != nil:
			one.asks, one.unasked = c.Confirmation, true
		}
		v.calls = append(v.calls, one)
	}
	for _, part := range content.Parts {
		if part != nil && part.FunctionCall != nil {
			if one := v.call(part.FunctionCall.ID); one != nil {
				one.signature = part.ThoughtSignature
			}
		}
	}
	return v
}

func (v *turnView) call(id string) *calling {
	for _, c := range v.calls {
		if c.call.ID == id {
			return c
		}
	}
	return nil
}

// answered brings an answer. The first end of a call stands, and of interim answers the newest.
func (c *calling) answered(a *protocol.Answer) {
	if was := c.answer; was != nil && (!was.Outcome.Interim() || a.Round <= was.Round) {
		return
	}
	c.answer, c.untold = a, true
	c.asks, c.unasked = a.Confirmation, a.Confirmation != nil
}

// ended reports whether nothing more comes.
func (c *calling) ended() bool { return c.answer != nil && !c.answer.Outcome.Interim() }

// running reports whether the call is under way for all that is known: neither answered nor waiting for a person.
func (c *calling) running() bool { return c.answer == nil && c.asks == nil }

// response is what is shown of the call now; nil for nothing. A call that asks people has ADK's placeholder, or what it
// returned by itself.
func (c *calling) response() (response map[string]any, isPlaceholder bool) {
	switch {
	case c.answer != nil && len(c.answer.Value) > 0:
		return object(c.answer.Value), false
	case c.asks != nil && c.answer == nil && len(c.call.Shown) > 0:
		return object(c.call.Shown), false
	case c.asks != nil:
		return placeholder(c.call.Tool), true
	}
	return nil, false
}

// responses shows what is new of a turn's calls: their responses in one event, in call order, then the questions to people
// in another. The first time it waits until no call is running, unless the turn does not wait for them: now.
func (v *turnView) responses(now bool, at int64, reply func(string) string, show func(session.Event)) {
	if !v.merged && !now && slices.ContainsFunc(v.calls, (*calling).running) {
		return
	}
	first := !v.merged
	v.merged = true
	content := &genai.Content{Role: genai.RoleUser}
	var actions session.EventActions
	var placeholders []string
	for _, c := range v.calls {
		if !c.untold && !(first && c.unasked) {
			continue
		}
		if response, isPlaceholder := c.response(); response != nil {
			content.Parts = append(content.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: c.call.ID, Name: c.call.Tool, Response: response}})
			if isPlaceholder {
				placeholders = append(placeholders, c.call.ID)
			}
		}
		if c.untold && c.answer != nil {
			merge(&actions, c.answer.Actions)
		}
		if c.unasked {
			if actions.RequestedToolConfirmations == nil {
				actions.RequestedToolConfirmations = map[string]toolconfirmation.ToolConfirmation{}
			}
			actions.RequestedToolConfirmations[c.call.ID] = toolConfirmation(c.asks)
			actions.SkipSummarization = true
		}
		c.untold = false
	}
	if len(content.Parts) > 0 {
		out := session.Event{Author: v.agent, Timestamp: millis(at), LLMResponse: model.LLMResponse{Content: content}, Actions: actions}
		if len(placeholders) > 0 {
			out.CustomMetadata = map[string]any{session.MetadataPlaceholders: placeholders}
		}
		show(out)
	}
	v.questions(at, reply, show)
}

// questions shows the questions that were not shown before, as ADK asks them.
func (v *turnView) questions(at int64, reply func(string) string, show func(session.Event)) {
	content := &genai.Content{Role: genai.RoleModel}
	var ids []string
	all := map[string]session.Terms{}
	for _, c := range v.calls {
		if !c.unasked {
			continue
		}
		c.unasked = false
		content.Parts = append(content.Parts, question(c))
		ids = append(ids, c.asks.ID)
		all[c.asks.ID] = terms(c.asks, reply)
	}
	if len(ids) == 0 {
		return
	}
	show(session.Event{
		Author: v.agent, Timestamp: millis(at), LongRunningToolIDs: ids,
		LLMResponse: model.LLMResponse{Content: content, CustomMetadata: map[string]any{session.MetadataTerms: all}},
	})
}
