package bench

import (
	"context"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// tracing says in the report what newTracing is.
const tracing = "on: every span is recorded and batched, and dropped by its exporter"

// newTracing is the tracer provider of a measured fabric: OpenTelemetry's own, with its default sampler and batches, so that
// all that tracing costs a process is measured but the sending. Its Shutdown must be called.
func newTracing() *sdk.TracerProvider { return sdk.NewTracerProvider(sdk.WithBatcher(discard{})) }

// discard is an exporter that drops what it gets.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }

func (discard) Shutdown(context.Context) error { return nil }
