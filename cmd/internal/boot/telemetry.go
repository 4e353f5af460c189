package boot

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolfabric/toolfabric/protocol"
)

// flushTime bounds how long a process that ends waits for a collector.
const flushTime = 3 * time.Second

// Telemetry sets OpenTelemetry's global providers when the OTEL_* environment names an exporter or an endpoint, and else
// leaves them silent. stop sends what is left, for at most 3 s. A wrong OTEL_* value is code usage.
func Telemetry(ctx context.Context, service string, log *slog.Logger) (stop func(), err error) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug("telemetry", "err", err) }))
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return func() {}, nil
	}
	var stops []func(context.Context) error
	stop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		for _, s := range stops {
			if err := s(ctx); err != nil {
				log.Debug("telemetry was not flushed", "err", err)
			}
		}
	}
	res, err := serviceResource(ctx, service)
	if err != nil {
		return stop, protocol.Wrap(err, protocol.CodeUsage, "OTEL_RESOURCE_ATTRIBUTES")
	}
	if asked("TRACES") {
		exporter, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return stop, protocol.Wrap(err, protocol.CodeUsage, "the exporter of traces; see OTEL_TRACES_EXPORTER")
		}
		provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(res))
		otel.SetTracerProvider(provider)
		stops = append(stops, provider.Shutdown)
	}
	if asked("METRICS") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return stop, protocol.Wrap(err, protocol.CodeUsage, "the exporter of metrics; see OTEL_METRICS_EXPORTER")
		}
		provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(res))
		otel.SetMeterProvider(provider)
		stops = append(stops, provider.Shutdown)
	}
	return stop, nil
}

// asked reports whether the environment wants a signal exported.
func asked(signal string) bool {
	switch exporter := os.Getenv("OTEL_" + signal + "_EXPORTER"); exporter {
	case "none":
		return false
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	default:
		return true
	}
}

func serviceResource(ctx context.Context, service string) (*resource.Resource, error) {
	// What comes later wins: OTEL_SERVICE_NAME over our own name.
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", Version())),
		resource.WithHost(), resource.WithProcessPID(), resource.WithTelemetrySDK(), resource.WithFromEnv(),
	)
	if errors.Is(err, resource.ErrPartialResource) {
		err = nil
	}
	return res, err
}
