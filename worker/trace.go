package worker

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
)

// spanOptions are what all spans of a tool start with, made once.
type spanOptions struct {
	name             string
	process, execute []trace.SpanStartOption
}

func newSpanOptions(tool, subject string) spanOptions {
	return spanOptions{
		name: telemetry.SpanExecuteTool + tool,
		process: []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			telemetry.MessagingSystem.String("nats"),
			telemetry.MessagingTemplate.String(telemetry.Destination),
			telemetry.MessagingDestination.String(subject),
			telemetry.MessagingOperation.String("process"),
			telemetry.MessagingOperationType.String("process"),
			telemetry.MessagingGroup.String(tool),
		)},
		execute: []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
			telemetry.OperationName.String(telemetry.OperationExecuteTool),
			telemetry.ToolName.String(tool),
			telemetry.ToolType.String(telemetry.ToolTypeFunction),
		)},
	}
}

// spans are those of one attempt: the message being processed, and in it the tool being executed. What samplers need not
// see is set when they end, at once: a span makes room for its attributes anew each time.
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
	ctx, s.process = w.tracer.Start(ctx, telemetry.SpanProcess, r.pool.spans.process...)
	ctx, s.execute = w.tracer.Start(ctx, r.pool.spans.name, r.pool.spans.execute...)
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
	s.execute.SetAttributes(telemetry.ToolCallID.String(env.Call), telemetry.ConversationID.String(env.Session),
		telemetry.Attempt.Int(s.r.first.Attempt), telemetry.Effect.String(string(env.Effect)), telemetry.Worker.String(s.w.cfg.ID),
		telemetry.Outcome.String(string(res.Outcome)))
	if s.w.capture {
		s.execute.SetAttributes(telemetry.ToolArguments.String(string(env.Args)), telemetry.ToolResult.String(string(res.Value)))
	}
	if err != nil || res.Outcome != protocol.OutcomeCompleted && !res.Outcome.Interim() {
		fail(s.execute, res.Code)
	}
	s.execute.End()
	return telemetry.FormatTraceparent(s.execute.SpanContext())
}

// settled ends the span of the message.
func (s *spans) settled(v *verdict) {
	if s.process.IsRecording() {
		s.process.SetAttributes(telemetry.MessagingMessageID.String(s.r.env.Call), telemetry.Attempt.Int(s.r.first.Attempt),
			telemetry.Settled.String(string(v.Way)))
		if v.Way == Returned {
			fail(s.process, v.Code)
		}
	}
	s.process.End()
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
