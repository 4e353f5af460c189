package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Kind is what spans of a kind have in common. Their attributes are put on them when they end, with what came of them: a
// span makes room for attributes anew each time, and samplers decide at the root of a trace, which begins with its own.
// A Kind is not changed once it is used; its methods may be called concurrently.
type Kind struct {
	Name    string
	Options []trace.SpanStartOption
	About   []attribute.KeyValue
}

// Start begins a span of the kind.
func (k *Kind) Start(ctx context.Context, t trace.Tracer) (context.Context, trace.Span) {
	return t.Start(ctx, k.Name, k.Options...)
}

// End puts the attributes of the kind and more on the span, if it is recorded, and ends it.
func (k *Kind) End(span trace.Span, more ...attribute.KeyValue) {
	if span.IsRecording() {
		all := rooms.Get().(*[]attribute.KeyValue)
		*all = append(append((*all)[:0], k.About...), more...)
		span.SetAttributes(*all...)
		clear(*all)
		rooms.Put(all)
	}
	span.End()
}

// rooms are used again: spans copy the attributes that they are given.
var rooms = sync.Pool{New: func() any { return new([]attribute.KeyValue) }}
