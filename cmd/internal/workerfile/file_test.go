package workerfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "w.yaml")
}

func environment(key string) (string, bool) {
	v, ok := map[string]string{"TOKEN": "secret"}[key]
	return v, ok
}

func TestAFileIsReadWhole(t *testing.T) {
	path := write(t, map[string]string{"s.json": `{"type":"object"}`, "w.yaml": `
slots: 3
grace: 5s
tools:
  - name: a
    description: first
    command: [wc, -w, 1]
    schema: s.json
    stdin: json
    effect: idempotent
    timeout: 1m
    queue_timeout: 2s
    attempts: 4
    max_active: 2
    long_running: true
    confirm: true
    park_timeout: 48h
    env: {PATH: /bin, KEY: "${env:TOKEN}"}
    dir: sub
  - {name: b, description: second, command: [date], schema: {type: object, properties: {n: {type: integer}}}}
`})
	f, err := Read(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	a := f.Tools[0]
	if f.Slots != 3 || f.Grace != 5*time.Second || len(f.Tools) != 2 || strings.Join(a.Command, " ") != "wc -w 1" || string(a.Schema) != `{"type":"object"}` ||
		a.Stdin != "json" || a.Effect != protocol.EffectIdempotent || a.Timeout != time.Minute || a.QueueTimeout != 2*time.Second || a.Attempts != 4 ||
		a.MaxActive != 2 || !a.LongRunning || !a.Confirm || a.ParkTimeout != 48*time.Hour || a.Env["KEY"] != "secret" || a.Env["PATH"] != "/bin" || a.Dir != filepath.Join(filepath.Dir(path), "sub") {
		t.Errorf("%+v", f)
	}
	if got := string(f.Tools[1].Schema); got != `{"type":"object","properties":{"n":{"type":"integer"}}}` {
		t.Errorf("inline schema: %s", got)
	}
}

func TestAToolOfAFileWaitsAsItSays(t *testing.T) {
	f, err := Read(write(t, map[string]string{"w.yaml": `tools:
  - {name: ticket, description: d, command: [date], long_running: true, park_timeout: 72h}
  - {name: pay, description: d, command: [date], confirm: true}
`}), environment)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := f.Build(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	settings := func(i int) tool.Settings { return tools[i].(tool.Configured).Settings() }
	if s := settings(0); !tools[0].IsLongRunning() || s.ParkTimeout != 72*time.Hour || s.Confirm {
		t.Errorf("ticket: long-running %v, %+v", tools[0].IsLongRunning(), s)
	}
	if s := settings(1); tools[1].IsLongRunning() || s.ParkTimeout != 0 || !s.Confirm {
		t.Errorf("pay: long-running %v, %+v", tools[1].IsLongRunning(), s)
	}
}

func TestEveryFaultIsToldWithItsPlace(t *testing.T) {
	path := write(t, map[string]string{"w.yaml": `tools:
  - name: a.b
    description: d
    command: wc -w
  - name: c
    description: d
    command: []
    effect: maybe
    timout: 3s
  - name: c
    command: [x]
    schema: missing.json
    env: {K: "${env:NOPE}"}
`})
	_, err := Read(path, environment)
	if protocol.CodeOf(err) != protocol.CodeUsage {
		t.Fatal(err)
	}
	for _, want := range []string{
		`w.yaml:2:11: "a.b": letters`, `w.yaml:4:14: command: [program`, `w.yaml:7:14: command names no program`,
		`w.yaml:8:13: unknown effect "maybe"`, `w.yaml:9:5: unknown key "timout"; did you mean "timeout"?`,
		`w.yaml:10:11: tool "c" is there twice, first at line 5: a worker serves a name once`, `needs the key "description"`, `w.yaml:12:13: the schema`, `NOPE`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
}

func TestAWorkerWithoutToolsIsRefused(t *testing.T) {
	for _, text := range []string{"slots: 1\n", "tools: []\n", ""} {
		if _, err := Read(write(t, map[string]string{"w.yaml": text}), environment); protocol.CodeOf(err) != protocol.CodeUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}
