package workerfile

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

// mcp reads a server whose tools are served. Its prefix is needed and no other entry has it: two servers may call tools alike.
func (r *reader) mcp(n ast.Node) mcptoolset.Config {
	var c mcptoolset.Config
	transport := ""
	r.Fields(n, "an MCP server", map[string]func(ast.Node){
		"prefix":            func(n ast.Node) { c.Prefix = r.prefix(n) },
		"command":           func(n ast.Node) { c.Command = r.command(n) },
		"env":               func(n ast.Node) { c.Env = pairs(r.env(n)) },
		"dir":               func(n ast.Node) { c.Dir = r.path(r.String(n)) },
		"url":               func(n ast.Node) { c.Endpoint = r.String(n) },
		"transport":         func(n ast.Node) { transport = r.transport(n) },
		"headers":           func(n ast.Node) { c.Header = headers(r.env(n)) },
		"bearer_env":        func(n ast.Node) { c.Token = r.bearer(n) },
		"only":              func(n ast.Node) { c.Only = r.Strings(n, "only: [tool, ...]") },
		"effect":            func(n ast.Node) { c.Settings.Effect = r.effect(n) },
		"effects":           func(n ast.Node) { c.Effects = r.effects(n) },
		"trust_hints":       func(n ast.Node) { c.Trust = r.Bool(n) },
		"allow_destructive": func(n ast.Node) { c.AllowDestructive = r.Bool(n) },
		"confirm":           func(n ast.Node) { c.RequireConfirmation = r.Bool(n) },
		"timeout":           func(n ast.Node) { c.Settings.Timeout = r.Duration(n) },
		"idle_timeout":      func(n ast.Node) { c.Idle = r.Duration(n) },
		"queue_timeout":     func(n ast.Node) { c.Settings.QueueTimeout = r.Duration(n) },
		"park_timeout":      func(n ast.Node) { c.Settings.ParkTimeout = r.Duration(n) },
		"elicit_limit":      func(n ast.Node) { c.ElicitLimit = r.Duration(n) },
		"attempts":          func(n ast.Node) { c.Settings.Attempts = r.Int(n) },
		"max_active":        func(n ast.Node) { c.Settings.MaxActive = r.Int(n) },
	}, "prefix")
	c.SSE = transport == "sse"
	if _, err := mcptoolset.New(c); err != nil {
		r.Fail(n, "%s", protocol.ProblemOf(err).Message)
	}
	return c
}

func (r *reader) prefix(n ast.Node) string {
	prefix := r.String(n)
	if r.prefixes == nil {
		r.prefixes = map[string]bool{}
	}
	if r.prefixes[prefix] {
		r.Fail(n, "another MCP server has the prefix %q", prefix)
	}
	r.prefixes[prefix] = true
	return prefix
}

func (r *reader) transport(n ast.Node) string {
	t := r.String(n)
	if t != "http" && t != "sse" {
		r.Fail(n, "transport %q: it is http or sse", t)
	}
	return t
}

func (r *reader) bearer(n ast.Node) func(context.Context) (string, error) {
	name := r.String(n)
	token, ok := r.lookup(name)
	if !ok {
		r.Fail(n, "environment variable %s is not set", name)
	}
	return func(context.Context) (string, error) { return token, nil }
}

func pairs(env map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return all
}

func headers(values map[string]string) http.Header {
	h := http.Header{}
	for name, value := range values {
		h.Set(strings.TrimSpace(name), value)
	}
	return h
}
