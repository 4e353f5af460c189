package coordinator

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// The trace of a run: invoke_agent is the root, below it each generate_content and, for each call, an execute_tool of role
// dispatch, which holds the send of its message; the worker goes on from there. What a user or a model said is in none of
// them.

// beginCalls opens the spans of the turn's calls, so that the log names them.
func (s *session) beginCalls(t *protocol.Turn) {
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Verdict != protocol.VerdictRun {
			continue
		}
		o := s.callOptions(c.Tool)
		_, span := s.c.tracer.Start(s.drive.ctx, o.name, o.start...)
		c.Span = telemetry.FormatTraceparent(span.SpanContext())
		if s.drive.spans == nil {
			s.drive.spans = map[string]trace.Span{}
		}
		s.drive.spans[c.ID] = span
	}
}

// callSpan is the span of a call that is sent now: the one that its turn's event names, or for a call that people agreed to
// and for a later round, which had none to begin, a new one. It is nil for a call that another process sent.
func (s *session) callSpan(e fold.Perform) trace.Span {
	if span := s.drive.spans[e.Call.ID]; span != nil {
		delete(s.drive.spans, e.Call.ID)
		return span
	}
	if e.Sent != nil || e.Call.Verdict == protocol.VerdictRun && e.Round == 0 {
		return nil
	}
	o := s.callOptions(e.Call.Tool)
	_, span := s.c.tracer.Start(s.drive.ctx, o.name, o.start...)
	return span
}

// spanOptions is what spans of a kind start with, for samplers to look at. They are made once in an adoption.
type spanOptions struct {
	name  string
	start []trace.SpanStartOption
}

// callOptions is for the spans of a tool's calls.
func (s *session) callOptions(tool string) spanOptions {
	if o, ok := s.drive.options[tool]; ok {
		return o
	}
	o := spanOptions{name: telemetry.SpanExecuteTool + tool, start: []trace.SpanStartOption{trace.WithAttributes(
		telemetry.OperationName.String(telemetry.OperationExecuteTool), telemetry.ToolName.String(tool),
		telemetry.ToolType.String(telemetry.ToolTypeFunction), telemetry.ConversationID.String(s.key.session),
		telemetry.Role.String("dispatch"))}}
	if s.drive.options == nil {
		s.drive.options = map[string]spanOptions{}
	}
	s.drive.options[tool] = o
	return o
}

// askOptions is for the spans of model requests.
func (s *session) askOptions(a *llmagent.LLMAgent) spanOptions {
	if s.drive.askOptions.name == "" {
		llm := a.Config().Model
		attributes := []attribute.KeyValue{
			telemetry.OperationName.String(telemetry.OperationGenerate), telemetry.RequestModel.String(llm.Name()),
			telemetry.AgentName.String(a.Name()), telemetry.ConversationID.String(s.key.session)}
		if p, ok := llm.(model.Provided); ok {
			attributes = append(attributes, telemetry.ProviderName.String(p.Provider()))
		}
		s.drive.askOptions = spanOptions{name: telemetry.SpanGenerate + llm.Name(), start: []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...)}}
	}
	return s.drive.askOptions
}

var producer = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer)}

// beginSend opens the span of publishing a call and puts it into the message's headers. Its parent is the call's own span,
// also when another process opened that.
func (c *Coordinator) beginSend(ctx context.Context, w *watch, msg natswire.Msg) trace.Span {
	if w.span != nil {
		ctx = trace.ContextWithSpan(ctx, w.span)
	} else if sc, ok := telemetry.ParseTraceparent(w.call.Span); ok {
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	ctx, span := c.tracer.Start(ctx, telemetry.SpanSend, producer...)
	telemetry.Inject(ctx, msg.Header)
	if span.IsRecording() {
		span.SetAttributes(telemetry.MessagingSystem.String("nats"), telemetry.MessagingTemplate.String(telemetry.Destination),
			telemetry.MessagingDestination.String(msg.Subject), telemetry.MessagingMessageID.String(w.call.ID),
			telemetry.MessagingOperation.String("send"), telemetry.MessagingOperationType.String("send"))
	}
	return span
}

// describe notes on the span of a model request what came of it.
func describe(span trace.Span, t protocol.Turn, version string) {
	if !span.IsRecording() {
		return
	}
	var about [6]attribute.KeyValue
	notes := about[:0]
	if t.Usage != nil {
		notes = append(notes, telemetry.InputTokens.Int(t.Usage.Prompt), telemetry.OutputTokens.Int(t.Usage.Candidates+t.Usage.Thoughts),
			telemetry.CachedTokens.Int(t.Usage.Cached), telemetry.ReasoningTokens.Int(t.Usage.Thoughts))
	}
	if t.Finish != "" {
		notes = append(notes, telemetry.FinishReasons.StringSlice([]string{t.Finish}))
	}
	if version != "" {
		notes = append(notes, telemetry.ResponseModel.String(version))
	}
	span.SetAttributes(notes...)
}
