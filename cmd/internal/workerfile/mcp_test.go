package workerfile

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestMCPServersAreReadWhole(t *testing.T) {
	path := write(t, map[string]string{"w.yaml": `
mcp:
  - prefix: fs
    command: [npx, server, /data]
    env: {KEY: "${env:TOKEN}"}
    dir: sub
    only: [read, write]
    effect: idempotent
    effects: {read: read}
    trust_hints: true
    allow_destructive: true
    confirm: true
    timeout: 5m
    idle_timeout: 30s
    queue_timeout: 2s
    park_timeout: 48h
    elicit_limit: 1m
    attempts: 4
    max_active: 2
  - {prefix: docs, url: "https://mcp.example.com/mcp", transport: sse, headers: {X-Tenant: acme, X-Key: "${env:TOKEN}"}, bearer_env: TOKEN}
`})
	f, err := Read(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.MCP) != 2 {
		t.Fatalf("%+v", f)
	}
	a, b := f.MCP[0], f.MCP[1]
	if a.Prefix != "fs" || strings.Join(a.Command, " ") != "npx server /data" || strings.Join(a.Env, " ") != "KEY=secret" || a.Dir != filepath.Join(filepath.Dir(path), "sub") ||
		strings.Join(a.Only, " ") != "read write" || a.Settings.Effect != tool.Idempotent || a.Effects["read"] != tool.Read || !a.Trust || !a.AllowDestructive || !a.RequireConfirmation ||
		a.Settings.Timeout != 5*time.Minute || a.Idle != 30*time.Second || a.Settings.QueueTimeout != 2*time.Second || a.Settings.ParkTimeout != 48*time.Hour ||
		a.ElicitLimit != time.Minute || a.Settings.Attempts != 4 || a.Settings.MaxActive != 2 {
		t.Errorf("%+v", a)
	}
	token, err := b.Token(t.Context())
	if b.Prefix != "docs" || b.Endpoint != "https://mcp.example.com/mcp" || !b.SSE || b.Header.Get("X-Tenant") != "acme" || b.Header.Get("X-Key") != "secret" || token != "secret" || err != nil {
		t.Errorf("%+v, token %q, %v", b, token, err)
	}
}

func TestFaultsOfMCPServersAreToldWithTheirPlace(t *testing.T) {
	_, err := Read(write(t, map[string]string{"w.yaml": `
mcp:
  - {prefix: a, command: [x], url: "http://127.0.0.1/"}
  - {prefix: a, command: [x], transport: quic, effects: {y: often}}
  - {command: [x], promts: 1}
  - {prefix: b, url: "http://127.0.0.1/", bearer_env: NOPE}
`}), environment)
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, want := range []string{
		`exactly one of Transport, Command and Endpoint`, `another MCP server has the prefix "a"`, `transport "quic"`, `unknown effect "often"`, `unknown key "promts"`, `needs the key "prefix"`, `NOPE`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if _, err := Read(write(t, map[string]string{"w.yaml": "slots: 2\n"}), environment); err == nil || !strings.Contains(err.Error(), "tools, openapi or mcp") {
		t.Errorf("without any tool: %v", err)
	}
}
