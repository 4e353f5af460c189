package boot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func TestSettingsTakeTheNearestSource(t *testing.T) {
	file := t.TempDir() + "/config.yaml"
	if err := os.WriteFile(file, []byte("nats: file\ncreds: file\noutput: json\nlisten: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lookup := func(key string) (string, bool) {
		v, ok := map[string]string{"TOOLFABRIC_CONFIG": file, "TOOLFABRIC_NATS": "env", "TOOLFABRIC_CREDS": "env", "TOOLFABRIC_LOG_LEVEL": "debug", "TOOLFABRIC_OUTPUT": ""}[key]
		return v, ok
	}
	var s Settings
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Register(flags)
	if err := flags.Parse([]string{"--nats", "flag"}); err != nil {
		t.Fatal(err)
	}
	if err := Resolve(flags, lookup); err != nil {
		t.Fatal(err)
	}
	if s.NATS != "flag" || s.Creds != "env" || s.Output != "json" || s.LogLevel != "debug" || s.Namespace != "" {
		t.Errorf("%+v", s)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestTelemetryIsExportedOnlyWhenAskedFor(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false},
		{map[string]string{"OTEL_SERVICE_NAME": "x"}, false},
		{map[string]string{"OTEL_TRACES_EXPORTER": "console"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1"}, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, false},
	} {
		for _, key := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"} {
			t.Setenv(key, c.env[key])
		}
		if got := asked("TRACES"); got != c.want {
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "no-such-exporter")
	if _, err := Telemetry(t.Context(), "test", slog.New(slog.DiscardHandler)); protocol.CodeOf(err) != protocol.CodeUsage {
		t.Errorf("an unknown exporter: %v", err)
	}
}

func TestLogsAreJSONForPrograms(t *testing.T) {
	var b bytes.Buffer
	log := Logger(&b, "", slog.LevelWarn)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	log.Info("not this")
	log.With("tool", "hash").WarnContext(trace.ContextWithSpanContext(context.Background(), span), "this")
	var record map[string]any
	if err := json.Unmarshal(b.Bytes(), &record); err != nil {
		t.Fatalf("%v: %s", err, &b)
	}
	if record["msg"] != "this" || record["tool"] != "hash" || record["trace_id"] != span.TraceID().String() {
		t.Errorf("%v", record)
	}
}

func TestLogsAreLinesForPeople(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(&console{screen: term.Screen{Writer: &b, TTY: true}, level: slog.LevelInfo, mu: new(sync.Mutex)})
	log.Debug("not this")
	log.With("a", 1).WithGroup("g").Info("done\x1b[2J", "text", "two words", "n", 2, slog.Group("in", "x", true), "err", errors.New("a\nb"))
	line := b.String()
	_, rest, _ := strings.Cut(line, " ")
	if want := `INFO done\u001b[2J a=1 g.text="two words" g.n=2 g.in.x=true g.err="a\nb"` + "\n"; rest != want {
		t.Errorf("%q, want %q", rest, want)
	}
}

func TestEndpointIsFoundUntilItIsRemoved(t *testing.T) {
	dir := t.TempDir()
	if e := ReadEndpoint(dir); e != (Endpoint{}) {
		t.Errorf("%+v", e)
	}
	want := Endpoint{URL: "nats://127.0.0.1:1", PID: 7, Sync: "always"}
	remove, err := WriteEndpoint(dir, want)
	if err != nil {
		t.Fatal(err)
	}
	if e := ReadEndpoint(dir); e != want {
		t.Errorf("%+v", e)
	}
	remove()
	if e := ReadEndpoint(dir); e != (Endpoint{}) {
		t.Errorf("%+v", e)
	}
	if _, err := WriteEndpoint(dir+"/missing", want); protocol.CodeOf(err) != protocol.CodeUsage {
		t.Error(err)
	}
}

func TestNoticesOfAConnectionAreLogged(t *testing.T) {
	var b bytes.Buffer
	hear := Listener(slog.New(slog.NewTextHandler(&b, nil)))
	hear(natswire.Notice{Kind: natswire.Disconnected})
	if b.Len() != 0 {
		t.Errorf("our own goodbye is news: %s", &b)
	}
	hear(natswire.Notice{Kind: natswire.Disconnected, Err: errors.New("EOF")})
	hear(natswire.Notice{Kind: natswire.Denied, Err: errors.New("no")})
	hear(natswire.Notice{Kind: natswire.Closed})
	for _, want := range []string{"connection lost", "denied", "closed for good"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing %q in %s", want, &b)
		}
	}
}
