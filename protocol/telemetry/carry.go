package telemetry

import (
	"context"
	"encoding/hex"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var w3c propagation.TraceContext

// Inject writes the span context of ctx into a message's headers as W3C traceparent and tracestate. The carrier must not
// be a nil map. Without a span in ctx nothing is written.
func Inject(ctx context.Context, c propagation.TextMapCarrier) { w3c.Inject(ctx, c) }

// Extract returns ctx with the span context that a message's headers carry as its remote parent; ctx itself when they
// carry none or a malformed one.
func Extract(ctx context.Context, c propagation.TextMapCarrier) context.Context {
	return w3c.Extract(ctx, c)
}

// FormatTraceparent is sc as a W3C traceparent, the form that the log and results keep; empty when sc is not valid.
func FormatTraceparent(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	var b [55]byte
	tid, sid := sc.TraceID(), sc.SpanID()
	copy(b[:], "00-")
	hex.Encode(b[3:35], tid[:])
	b[35] = '-'
	hex.Encode(b[36:52], sid[:])
	copy(b[52:], "-00")
	if sc.IsSampled() {
		b[54] = '1'
	}
	return string(b[:])
}

// ParseTraceparent reads what FormatTraceparent wrote, and any traceparent of the W3C recommendation, as a remote span
// context. It returns false when s is none.
func ParseTraceparent(s string) (trace.SpanContext, bool) {
	sc := trace.SpanContextFromContext(w3c.Extract(context.Background(), parentOnly(s)))
	return sc, sc.IsValid()
}

// parentOnly is a carrier that holds one traceparent.
type parentOnly string

func (p parentOnly) Get(key string) string {
	if strings.EqualFold(key, "traceparent") {
		return string(p)
	}
	return ""
}

func (p parentOnly) Set(string, string) {}

func (p parentOnly) Keys() []string { return []string{"traceparent"} }

// ContentCapture reports whether arguments, results and messages may stand on spans: the environment variable
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is true. They may hold anything a user ever typed, so the default is
// no.
func ContentCapture() bool {
	on, err := strconv.ParseBool(os.Getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))
	return err == nil && on
}
