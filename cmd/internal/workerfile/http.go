package workerfile

import (
	"context"
	"os"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

// Request is what requests of an endpoint, or of the operations of a document, have in common. Credentials are named in it,
// as ${env:NAME} or ${file:PATH}, and looked up when the tool is built.
type Request struct {
	Headers     map[string]string
	Basic       string   // user:password
	Allow       []string // addresses, blocks and hosts that are reached although they are not public
	MaxResponse int      // in bytes; 0 is httptool.DefaultMaxResponse
	Binary      []string // media types beside JSON and text that are answered

	// What credentials are looked up with; nil and empty are the environment and the working directory.
	Lookup func(string) (string, bool)
	Folder string
}

func (q *Request) keys(r *reader) map[string]func(ast.Node) {
	q.Lookup, q.Folder = r.lookup, r.folder
	return map[string]func(ast.Node){
		"headers":      func(n ast.Node) { q.Headers = r.StringMap(n, "headers") },
		"basic":        func(n ast.Node) { q.Basic = r.String(n) },
		"allow":        func(n ast.Node) { q.Allow = r.Strings(n, "allow") },
		"max_response": func(n ast.Node) { q.MaxResponse = r.Int(n) },
		"binary":       func(n ast.Node) { q.Binary = r.Strings(n, "binary") },
	}
}

// HTTP is an endpoint that is served as a tool: see httptool.Config.
type HTTP struct {
	Method string
	URL    string
	Body   string
	Request
}

func (r *reader) http(n ast.Node) *HTTP {
	h := &HTTP{}
	known := h.Request.keys(r)
	known["method"] = func(n ast.Node) { h.Method = r.String(n) }
	known["url"] = func(n ast.Node) { h.URL = r.String(n) }
	known["body"] = func(n ast.Node) { h.Body = r.String(n) }
	r.Fields(n, "http", known, "url")
	return h
}

func (h *HTTP) build(t *Tool) (tool.Tool, error) {
	return httptool.New(httptool.Config{
		Name: t.Name, Description: t.Description, Schema: t.Schema, Method: h.Method, URL: h.URL, Body: h.Body,
		Headers: h.Headers, Basic: h.Basic, MaxResponse: h.MaxResponse, Binary: h.Binary, Network: httptool.Network{Allow: h.Allow},
		LookupEnv: h.Lookup, Dir: h.Folder, Effect: t.Effect, Timeout: t.Timeout, QueueTimeout: t.QueueTimeout, ParkTimeout: t.ParkTimeout,
		Attempts: t.Attempts, MaxActive: t.MaxActive, Confirm: t.Confirm,
	})
}

// OpenAPI is a document whose operations are served as tools: see httptool.OpenAPIConfig.
type OpenAPI struct {
	Name        string // of the set, for people to read
	Document    string // a file, or a URL of http or https
	Prefix      string // that with a _ stands before each tool's name; empty is none
	BaseURL     string
	Servers     bool
	Only        []string // operations; nil is all
	Credentials map[string]string
	Effects     map[string]protocol.Effect
	Request
	Pool // its Effect is unused
}

func (r *reader) openAPI(n ast.Node) OpenAPI {
	o := OpenAPI{}
	known := o.Request.keys(r)
	for key, read := range o.Pool.keys(r) {
		known[key] = read
	}
	delete(known, "effect")
	known["name"] = func(n ast.Node) { o.Name = r.String(n) }
	known["document"] = func(n ast.Node) {
		if o.Document = r.String(n); !isURL(o.Document) {
			o.Document = r.path(o.Document)
		}
	}
	known["prefix"] = func(n ast.Node) { o.Prefix = r.String(n) }
	known["base_url"] = func(n ast.Node) { o.BaseURL = r.String(n) }
	known["servers"] = func(n ast.Node) { o.Servers = r.Bool(n) }
	known["only"] = func(n ast.Node) { o.Only = r.Strings(n, "only") }
	known["credentials"] = func(n ast.Node) { o.Credentials = r.StringMap(n, "credentials") }
	known["effects"] = func(n ast.Node) { o.Effects = r.effects(n) }
	r.Fields(n, "an openapi", known, "name", "document")
	if o.BaseURL == "" && !o.Servers {
		r.Fail(n, "where is the API? Give its base_url, or say servers: true to use the document's own")
	}
	return o
}

func isURL(location string) bool {
	return strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://")
}

func (r *reader) effects(n ast.Node) map[string]protocol.Effect {
	effects := map[string]protocol.Effect{}
	for name, text := range r.StringMap(n, "effects") {
		effects[name] = protocol.Effect(text)
		if err := CheckEffect(effects[name]); err != nil {
			r.Fail(n, "%s: %s", name, err.Public)
		}
	}
	return effects
}

// Build makes the toolset, and says which operations are no tools. It reads the document, and ends with ctx.
func (o *OpenAPI) Build(ctx context.Context) (tool.Toolset, []httptool.Skipped, error) {
	network := httptool.Network{Allow: o.Allow}
	var text []byte
	var err error
	if isURL(o.Document) {
		text, err = httptool.Fetch(ctx, o.Document, network)
	} else if text, err = os.ReadFile(o.Document); err != nil {
		err = protocol.Errorf(protocol.CodeUsage, "toolset %s: the document cannot be read: %v", o.Name, err)
	}
	if err != nil {
		return nil, nil, err
	}
	set, err := httptool.OpenAPI(httptool.OpenAPIConfig{
		Name: o.Name, Document: text, BaseURL: o.BaseURL, Servers: o.Servers, Operations: o.Only, Credentials: o.Credentials, Effects: o.Effects,
		Headers: o.Headers, Basic: o.Basic, MaxResponse: o.MaxResponse, Binary: o.Binary, Network: network, LookupEnv: o.Lookup, Dir: o.Folder,
		Timeout: o.Timeout, QueueTimeout: o.QueueTimeout, ParkTimeout: o.ParkTimeout, Attempts: o.Attempts, MaxActive: o.MaxActive, Confirm: o.Confirm,
	})
	if err != nil {
		return nil, nil, err
	}
	if o.Prefix == "" {
		return set, set.Skipped(), nil
	}
	return tool.Prefix(set, o.Prefix), set.Skipped(), nil
}
