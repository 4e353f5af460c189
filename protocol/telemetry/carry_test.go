package telemetry_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceparentSurvivesHeaders(t *testing.T) {
	sc, ok := telemetry.ParseTraceparent(parent)
	if !ok || !sc.IsSampled() || !sc.IsRemote() {
		t.Fatalf("ParseTraceparent(%q) = %v, %v", parent, sc, ok)
	}
	h := natswire.Header{}
	telemetry.Inject(trace.ContextWithRemoteSpanContext(t.Context(), sc), h)
	if got := h[natswire.HeaderTraceparent]; got != parent {
		t.Errorf("header traceparent = %q, want %q", got, parent)
	}
	back := trace.SpanContextFromContext(telemetry.Extract(context.Background(), natswire.Header{"Traceparent": parent}))
	if !back.Equal(sc) {
		t.Errorf("a header written as Traceparent is read as %v, want %v", back, sc)
	}
}

func TestFormatTraceparentIsParsedBack(t *testing.T) {
	for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled} {
		sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: flags})
		got, ok := telemetry.ParseTraceparent(telemetry.FormatTraceparent(sc))
		if !ok || !got.Equal(sc.WithRemote(true)) {
			t.Errorf("%v came back as %v, %v", sc, got, ok)
		}
	}
	if s := telemetry.FormatTraceparent(trace.SpanContext{}); s != "" {
		t.Errorf("an invalid span context is written as %q", s)
	}
}

func TestParseTraceparentRefusesOthers(t *testing.T) {
	for _, s := range []string{"", "00", parent + "0", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "zz" + parent[2:]} {
		if sc, ok := telemetry.ParseTraceparent(s); ok {
			t.Errorf("%q is taken as %v", s, sc)
		}
	}
}

func TestContentIsCapturedOnlyWhenAskedFor(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "maybe": false, "true": true, "TRUE": true} {
		t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
		if got := telemetry.ContentCapture(); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func FuzzParseTraceparent(f *testing.F) {
	f.Add(parent)
	f.Add("01" + parent[2:] + "-more")
	f.Fuzz(func(t *testing.T, s string) {
		sc, ok := telemetry.ParseTraceparent(s)
		if !ok {
			return
		}
		again, ok := telemetry.ParseTraceparent(telemetry.FormatTraceparent(sc))
		if !ok || again.SpanID() != sc.SpanID() || again.TraceID() != sc.TraceID() {
			t.Errorf("%q is read as %v and then as %v", s, sc, again)
		}
	})
}
