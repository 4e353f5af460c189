package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
)

// kinds are those of a pool's spans, made once.
type kinds struct{ process, execute telemetry.Kind }

func newKinds(tool, subject string) kinds {
	return kinds{
		process: telemetry.Kind{
			Name:    telemetry.SpanProcess,
			Options: []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)},
			About: []attribute.KeyValue{
				telemetry.MessagingSystem.String("nats"),
				telemetry.MessagingTemplate.String(telemetry.Destination),
				telemetry.MessagingDestination.String(subject),
				telemetry.MessagingOperation.String("process"),
				telemetry.MessagingOperationType.String("process"),
				telemetry.MessagingGroup.String(tool),
			},
		},
		execute: telemetry.Kind{
			Name: telemetry.SpanExecuteTool + tool,
			About: []attribute.KeyValue{
				telemetry.OperationName.String(telemetry.OperationExecuteTool),
				telemetry.ToolName.String(tool),
				telemetry.ToolType.String(telemetry.ToolTypeFunction),
			},
		},
	}
}

// spans are those of one attempt: the message being processed, and in it the tool being executed.
type spans struct {
	process, execute trace.Span
	w                *Worker
	r                *run
}

// trace starts both spans. The sender's span is parent and link: one message is one call, so the trace stays one tree, and
// whoever follows links finds it too.
func (w *Worker) trace(r *run) (context.Context, spans) {
	ctx := r.ctx
	if r.first.Header.Get(natswire.HeaderTraceparent) != "" {
		ctx = telemetry.Extract(ctx, r.first.Header)
	}
	sender := trace.SpanContextFromContext(ctx)
	s := spans{w: w, r: r}
	ctx, s.process = r.pool.kinds.process.Start(ctx, w.tracer)
	ctx, s.execute = r.pool.kinds.execute.Start(ctx, w.tracer)
	if sender.IsValid() && s.process.IsRecording() {
		s.process.AddLink(trace.Link{SpanContext: sender})
	}
	return ctx, s
}

// executed ends the execution's span and returns its traceparent, empty when it is not recorded.
func (s *spans) executed(res *protocol.Result, err error) string {
	if !s.execute.IsRecording() {
		return ""
	}
	env := &s.r.env
	if s.w.capture {
		s.execute.SetAttributes(telemetry.ToolArguments.String(string(env.Args)), telemetry.ToolResult.String(string(res.Value)))
	}
	if err != nil || res.Outcome != protocol.OutcomeCompleted && !res.Outcome.Interim() {
		fail(s.execute, res.Code)
	}
	s.r.pool.kinds.execute.End(s.execute, telemetry.ToolCallID.String(env.Call), telemetry.ConversationID.String(env.Session),
		telemetry.Attempt.Int(s.r.first.Attempt), telemetry.Effect.String(string(env.Effect)), telemetry.Worker.String(s.w.cfg.ID),
		telemetry.Outcome.String(string(res.Outcome)))
	return telemetry.FormatTraceparent(s.execute.SpanContext())
}

// settled ends the span of the message.
func (s *spans) settled(v *verdict) {
	if v.Way == Returned {
		fail(s.process, v.Code)
	}
	s.r.pool.kinds.process.End(s.process, telemetry.MessagingMessageID.String(s.r.env.Call), telemetry.Attempt.Int(s.r.first.Attempt),
		telemetry.Settled.String(string(v.Way)))
}

// fail marks a span by the kind of failure alone: its text may quote what a user said.
func fail(s trace.Span, code protocol.Code) {
	kind := string(code)
	if kind == "" {
		kind = telemetry.ErrorTypeTool
	}
	s.SetAttributes(telemetry.ErrorType.String(kind))
	s.SetStatus(codes.Error, kind)
}
