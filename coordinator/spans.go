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
		span := s.beginCall(c.Tool)
		c.Span = telemetry.FormatTraceparent(span.SpanContext())
		if s.drive.spans == nil {
			s.drive.spans = map[string]callSpan{}
		}
		s.drive.spans[c.ID] = span
	}
}

// callSpan is the span of a call as its session's owner sees it.
type callSpan struct {
	trace.Span // nil for a call that another process sent
	kind       *telemetry.Kind
}

func (s *session) beginCall(tool string) callSpan {
	kind := s.callKind(tool)
	_, span := kind.Start(s.drive.ctx, s.c.tracer)
	return callSpan{span, kind}
}

// callSpan is the span of a call that is sent now: the one that its turn's event names, or for a call that people agreed to
// and for a later round, which had none to begin, a new one.
func (s *session) callSpan(e fold.Perform) callSpan {
	if span, ok := s.drive.spans[e.Call.ID]; ok {
		delete(s.drive.spans, e.Call.ID)
		return span
	}
	if e.Sent != nil || e.Call.Verdict == protocol.VerdictRun && e.Round == 0 {
		return callSpan{}
	}
	return s.beginCall(e.Call.Tool)
}

// callKind is that of a tool's calls, made once in an adoption.
func (s *session) callKind(tool string) *telemetry.Kind {
	if k := s.drive.kinds[tool]; k != nil {
		return k
	}
	k := &telemetry.Kind{Name: telemetry.SpanExecuteTool + tool, About: []attribute.KeyValue{
		telemetry.OperationName.String(telemetry.OperationExecuteTool), telemetry.ToolName.String(tool),
		telemetry.ToolType.String(telemetry.ToolTypeFunction), telemetry.ConversationID.String(s.key.session),
		telemetry.Role.String("dispatch")}}
	if s.drive.kinds == nil {
		s.drive.kinds = map[string]*telemetry.Kind{}
	}
	s.drive.kinds[tool] = k
	return k
}

// askKind is that of model requests, made once for an agent.
func (s *session) askKind(a *llmagent.LLMAgent) *telemetry.Kind {
	if s.drive.askKind == nil {
		llm := a.Config().Model
		about := []attribute.KeyValue{
			telemetry.OperationName.String(telemetry.OperationGenerate), telemetry.RequestModel.String(llm.Name()),
			telemetry.AgentName.String(a.Name()), telemetry.ConversationID.String(s.key.session)}
		if p, ok := llm.(model.Provided); ok {
			about = append(about, telemetry.ProviderName.String(p.Provider()))
		}
		s.drive.askKind = &telemetry.Kind{Name: telemetry.SpanGenerate + llm.Name(), About: about,
			Options: []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}}
	}
	return s.drive.askKind
}

// sendKind is that of a call's publish.
var sendKind = telemetry.Kind{
	Name: telemetry.SpanSend, Options: []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer)},
	About: []attribute.KeyValue{
		telemetry.MessagingSystem.String("nats"), telemetry.MessagingTemplate.String(telemetry.Destination),
		telemetry.MessagingOperation.String("send"), telemetry.MessagingOperationType.String("send"),
	},
}

// endSend ends the span of publishing a call.
func endSend(span trace.Span, w *watch, msg natswire.Msg) {
	sendKind.End(span, telemetry.MessagingDestination.String(msg.Subject), telemetry.MessagingMessageID.String(w.call.ID))
}

// beginSend opens the span of publishing a call and puts it into the message's headers. Its parent is the call's own span,
// also when another process opened that.
func (c *Coordinator) beginSend(ctx context.Context, w *watch, msg natswire.Msg) trace.Span {
	if w.span.Span != nil {
		ctx = trace.ContextWithSpan(ctx, w.span.Span)
	} else if sc, ok := telemetry.ParseTraceparent(w.call.Span); ok {
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	ctx, span := sendKind.Start(ctx, c.tracer)
	telemetry.Inject(ctx, msg.Header)
	return span
}

// describe is what a span of a model request says about the answer.
func describe(t protocol.Turn, version string) (notes []attribute.KeyValue) {
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
	return notes
}
