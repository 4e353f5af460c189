// Package workerfile reads a worker's configuration: the commands, endpoints, OpenAPI documents and MCP servers whose tools it
// serves and how many calls it takes.
//
//	slots: 8
//	grace: 20s
//	tools:
//	  - name: word_count
//	    description: Counts the words of a text.
//	    command: [wc, -w]
//	    schema: {type: object, properties: {text: {type: string}}, required: [text]}
//	    effect: read
//	    timeout: 10s
//	  - name: weather
//	    description: Tells the weather of a city.
//	    http:
//	      url: https://api.example.com/v1/{city}?units={units}
//	      headers: {Authorization: "Bearer ${env:WEATHER_KEY}"}
//	openapi:
//	  - name: pets
//	    document: petstore.yaml
//	    base_url: https://pets.example.com/v1
//	    only: ["GET *", createPet]
//	    credentials: {api_key: "${env:PET_KEY}"}
//	mcp:
//	  - prefix: fs
//	    command: [npx, -y, "@modelcontextprotocol/server-filesystem", /data]
//	    effects: {read_text_file: read}
//	  - prefix: docs
//	    url: https://mcp.example.com/mcp
//	    headers: {X-Tenant: acme}
//	    bearer_env: DOCS_TOKEN
package workerfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/cmd/internal/strictyaml"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

// File is a worker's configuration.
type File struct {
	Slots   int           // calls at once over all tools; 0 is the worker's default
	Grace   time.Duration // for running calls when the worker is told to stop; 0 is the worker's default
	Tools   []Tool
	OpenAPI []OpenAPI
	MCP     []mcptoolset.Config // servers whose tools are served too, without what needs a connection
}

// Tool is a command or an endpoint that is served as a tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments; empty is a tool without arguments, or what an endpoint's places make
	Pool

	HTTP *HTTP // nil for a command, which the rest describes

	Command     []string          // argv; no shell
	Stdin       string            // name of the property that goes to stdin, or json; empty decides by the schema
	LongRunning bool              // what it writes is not its result yet: see exectool.Config.LongRunning
	Env         map[string]string // beside a clean environment
	Dir         string            // working directory; empty is the worker's
}

// Read reads a file. Paths in it are relative to its folder; ${env:NAME} as the value of an environment variable is taken
// from the worker's own; in what a request sends it is a credential, and looked up when the tool is built. It returns code usage with every fault and its place.
func Read(path string, lookup func(string) (string, bool)) (File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return File{}, protocol.Wrap(err, protocol.CodeUsage, "the worker's configuration cannot be read")
	}
	r := reader{Document: strictyaml.Parse(path, text), folder: filepath.Dir(path), lookup: lookup}
	var f File
	r.Fields(r.Root(), "the file", map[string]func(ast.Node){
		"slots": func(n ast.Node) { f.Slots = r.Int(n) },
		"grace": func(n ast.Node) { f.Grace = r.Duration(n) },
		"tools": func(n ast.Node) {
			r.Items(n, "tools", func(item ast.Node) { f.Tools = append(f.Tools, r.tool(item)) })
		},
		"openapi": func(n ast.Node) {
			r.Items(n, "openapi", func(item ast.Node) { f.OpenAPI = append(f.OpenAPI, r.openAPI(item)) })
		},
		"mcp": func(n ast.Node) {
			r.Items(n, "mcp", func(item ast.Node) { f.MCP = append(f.MCP, r.mcp(item)) })
		},
	})
	if len(f.Tools)+len(f.OpenAPI)+len(f.MCP) == 0 && r.Err() == nil {
		r.Fail(r.Root(), "a worker serves at least one tool: list some under tools, openapi or mcp")
	}
	return f, r.Err()
}

type reader struct {
	*strictyaml.Document
	folder string
	lookup func(string) (string, bool)
	names  map[string]int // the line of each name

	prefixes map[string]bool // of MCP servers
}

func (r *reader) tool(n ast.Node) Tool {
	var t Tool
	known := t.Pool.keys(r)
	known["name"] = func(n ast.Node) { t.Name = r.name(n) }
	known["description"] = func(n ast.Node) { t.Description = r.String(n) }
	known["schema"] = func(n ast.Node) { t.Schema = r.schema(n) }
	known["http"] = func(n ast.Node) { t.HTTP = r.http(n) }
	var commands []ast.Node // what goes with a command only
	ofCommand := func(key string, read func(ast.Node)) {
		known[key] = func(n ast.Node) {
			commands = append(commands, n)
			read(n)
		}
	}
	ofCommand("command", func(n ast.Node) { t.Command = r.command(n) })
	ofCommand("stdin", func(n ast.Node) { t.Stdin = r.String(n) })
	ofCommand("long_running", func(n ast.Node) { t.LongRunning = r.Bool(n) })
	ofCommand("env", func(n ast.Node) { t.Env = r.env(n) })
	ofCommand("dir", func(n ast.Node) { t.Dir = r.path(r.String(n)) })
	r.Fields(n, "a tool", known, "name", "description")
	if !r.has(n, "command", "http") {
		r.Fail(n, "a tool needs the key %q, or %q", "command", "http")
	}
	if t.HTTP != nil && len(commands) > 0 {
		r.Fail(commands[0], "this goes with a command, and the tool is an endpoint: leave it out, or http")
	}
	return t
}

// has reports whether a mapping has one of the keys. What is no mapping is a fault of its own.
func (r *reader) has(n ast.Node, keys ...string) bool {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		_, single := n.(*ast.MappingValueNode)
		return !single
	}
	return slices.ContainsFunc(m.Values, func(v *ast.MappingValueNode) bool {
		k, ok := v.Key.(*ast.StringNode)
		return ok && slices.Contains(keys, k.Value)
	})
}

func (r *reader) name(n ast.Node) string {
	name := r.String(n)
	if err := protocol.CheckName(name); err != nil && name != "" {
		r.Fail(n, "%s", protocol.ProblemOf(err).Message)
	}
	if r.names == nil {
		r.names = map[string]int{}
	}
	line := n.GetToken().Position.Line
	if first, twice := r.names[name]; twice {
		r.Fail(n, "tool %q is there twice, first at line %d: a worker serves a name once, so give one of them another name", name, first)
		return name
	}
	r.names[name] = line
	return name
}

func (r *reader) command(n ast.Node) []string {
	argv := r.Strings(n, "command: [program, argument, ...]; there is no shell, so it")
	if len(argv) == 0 {
		r.Fail(n, "command names no program")
	}
	return argv
}

// schema is inline, or the path of a JSON file.
func (r *reader) schema(n ast.Node) json.RawMessage {
	if s, ok := n.(*ast.StringNode); ok {
		raw, err := ReadSchema(r.path(s.Value))
		if err != nil {
			r.Fail(n, "%s", protocol.ProblemOf(err).Message)
		}
		return raw
	}
	raw := r.JSON(n)
	if len(raw) == 0 || raw[0] != '{' {
		r.Fail(n, "a schema is a mapping, or the path of a JSON file")
	}
	return raw
}

// ReadSchema reads a JSON Schema from a file. It returns code usage.
func ReadSchema(path string) (json.RawMessage, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeUsage, "the schema %s cannot be read: %v", path, err)
	}
	if err := protocol.Check(raw, protocol.Limits{Size: protocol.MaxSchema, Depth: 64}); err != nil {
		return nil, protocol.Errorf(protocol.CodeUsage, "the schema %s is refused: %s", path, protocol.ProblemOf(err).Message)
	}
	return json.RawMessage(strings.TrimSpace(string(raw))), nil
}

func (r *reader) effect(n ast.Node) protocol.Effect {
	e := protocol.Effect(r.String(n))
	if err := CheckEffect(e); err != nil {
		r.Fail(n, "%s", err.Public)
	}
	return e
}

// CheckEffect refuses what is no effect class.
func CheckEffect(e protocol.Effect) *protocol.Error {
	switch e {
	case "", protocol.EffectRead, protocol.EffectIdempotent, protocol.EffectAtMostOnce:
		return nil
	}
	return protocol.Errorf(protocol.CodeUsage, "unknown effect %q: it is read, idempotent or at_most_once", e)
}

func (r *reader) env(n ast.Node) map[string]string {
	env := r.StringMap(n, "env")
	for name, value := range env {
		from, ok := strings.CutPrefix(value, "${env:")
		if !ok {
			continue
		}
		from = strings.TrimSuffix(from, "}")
		if env[name], ok = r.lookup(from); !ok {
			r.Fail(n, "environment variable %s, which %s is taken from, is not set", from, name)
		}
	}
	return env
}

func (r *reader) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(r.folder, p)
}
