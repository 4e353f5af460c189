package worker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// traced runs one call under a recorder and returns its spans, execute_tool first, and its result.
func traced(t *testing.T, h natswire.Header, run func(tool.Context, json.RawMessage) (json.RawMessage, error)) (execute, process tracetest.SpanStub, r protocol.Result) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("echo", tool.Read)
		if run != nil {
			e.run = run
		}
		f.serve(e)
		f.start("w1", worker.Config{Tracer: sdk.NewTracerProvider(sdk.WithSyncer(spans))}, e)
		c := f.call(e, "c1", `{"secret":"hunter2"}`)
		f.publishWith(h, c)
		r, _ = f.result(c)
	})
	got := spans.GetSpans()
	if len(got) != 2 {
		t.Fatalf("%d spans, want two", len(got))
	}
	return got[0], got[1], r
}

func attributes(s tracetest.SpanStub) map[attribute.Key]string {
	m := map[attribute.Key]string{}
	for _, kv := range s.Attributes {
		m[kv.Key] = kv.Value.Emit()
	}
	return m
}

func TestTraceGoesOnFromTheSender(t *testing.T) {
	execute, process, r := traced(t, natswire.Header{"Traceparent": sender}, nil)
	parent, _ := telemetry.ParseTraceparent(sender)
	if process.Name != "process toolfabric.call.{tool}" || process.SpanKind != trace.SpanKindConsumer || process.Parent.SpanID() != parent.SpanID() {
		t.Errorf("the process span is %s %s below %s", process.SpanKind, process.Name, process.Parent.SpanID())
	}
	if len(process.Links) != 1 || process.Links[0].SpanContext.SpanID() != parent.SpanID() {
		t.Errorf("it links to %v, want the sender", process.Links)
	}
	if execute.Name != "execute_tool echo" || execute.SpanKind != trace.SpanKindInternal || execute.Parent.SpanID() != process.SpanContext.SpanID() {
		t.Errorf("the tool's span is %s %s below %s", execute.SpanKind, execute.Name, execute.Parent.SpanID())
	}
	for key, want := range map[attribute.Key]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "echo", "gen_ai.tool.call.id": "c1", "gen_ai.tool.type": "function",
		"toolfabric.attempt": "1", "toolfabric.outcome": "completed",
	} {
		if got := attributes(execute)[key]; got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if want := telemetry.FormatTraceparent(execute.SpanContext); r.Span != want {
		t.Errorf("the result names the span %q, want %q", r.Span, want)
	}
	if execute.SpanContext.TraceID() != parent.TraceID() {
		t.Error("the trace was cut")
	}
}

func TestFailureIsOnTheSpanAndItsTextIsNot(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(tool.Context, json.RawMessage) (json.RawMessage, error)
		kind string
	}{
		"tool":  {func(tool.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("hunter2") }, "tool_error"},
		"panic": {func(tool.Context, json.RawMessage) (json.RawMessage, error) { panic("hunter2") }, "tool_panic"},
	} {
		t.Run(name, func(t *testing.T) {
			execute, process, _ := traced(t, nil, tc.run)
			if execute.Status.Code != codes.Error || attributes(execute)[telemetry.ErrorType] != tc.kind {
				t.Errorf("status %v, error.type %q, want %q", execute.Status, attributes(execute)[telemetry.ErrorType], tc.kind)
			}
			if len(process.Links) != 0 {
				t.Error("a link to nobody")
			}
			for _, s := range []tracetest.SpanStub{execute, process} {
				if all, _ := json.Marshal(s.Attributes); strings.Contains(string(all)+s.Status.Description, "hunter2") {
					t.Errorf("what a user said is on span %s: %s", s.Name, all)
				}
			}
		})
	}
}

func TestContentIsOnSpansOnlyWhenAskedFor(t *testing.T) {
	execute, _, _ := traced(t, nil, nil)
	if got := attributes(execute)[telemetry.ToolArguments]; got != "" {
		t.Errorf("arguments on the span: %s", got)
	}
	t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
	execute, _, _ = traced(t, nil, nil)
	got := attributes(execute)
	if got[telemetry.ToolArguments] != `{"secret":"hunter2"}` || got[telemetry.ToolResult] != `{"secret":"hunter2"}` {
		t.Errorf("arguments %s, result %s", got[telemetry.ToolArguments], got[telemetry.ToolResult])
	}
}
