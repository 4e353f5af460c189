package httptool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// OpenAPIConfig makes a toolset of an OpenAPI document. Name, Document, and BaseURL or Servers are needed.
type OpenAPIConfig struct {
	Name string
	// Document is OpenAPI 3.0 or later, as JSON or YAML of at most MaxDocument bytes, without anchors. References are
	// followed inside its components only; nothing is loaded.
	Document []byte
	// BaseURL is where the API is: https://api.example.com/v1. Servers takes the document's own word for it instead: the
	// first server of an operation, its path or the document, with the defaults of its variables.
	BaseURL string
	Servers bool
	// Operations chooses what becomes a tool, by operationId or by method and path, as in "GET /pets/{petId}"; * stands for
	// any text, as in "GET *". Nil chooses all. An entry that fits nothing is an error.
	Operations []string
	// Credentials bind the document's security schemes, by their names, to credentials: ${env:KEY}, or for the scheme basic
	// user:${env:PASSWORD}. Each operation gets those that it asks for, and no other.
	Credentials map[string]string
	// Headers and Basic go with each request: see Config. A parameter of the same name is not shown to the model.
	Headers map[string]string
	Basic   string
	// Effects overrides the effect class that goes by the method, by the keys of Operations.
	Effects map[string]tool.Effect

	// See Config for the rest. They hold for each tool.
	MaxResponse  int
	Binary       []string
	Network      Network
	LookupEnv    func(name string) (string, bool)
	Dir          string
	Timeout      time.Duration
	QueueTimeout time.Duration
	ParkTimeout  time.Duration
	Attempts     int
	MaxActive    int
	Confirm      bool
}

// Skipped is an operation that was chosen and is no tool, or not all of it.
type Skipped struct {
	Operation string // "GET /pets", and the operationId in brackets
	Reason    string
	Served    bool // it is a tool, and Reason says what it lacks
}

// String is one line for people.
func (s Skipped) String() string { return s.Operation + ": " + s.Reason }

// Set is the toolset of a document. It does not change, and may be used by many goroutines.
type Set struct {
	name    string
	tools   []tool.Tool
	skipped []Skipped
	client  *client
}

// OpenAPI makes a toolset of a document. Each operation that is chosen becomes a tool, named by its operationId, or else by
// its method and path, in the spelling of tool.Alias; its parameters are arguments of their names, its body is the argument
// body. One that cannot become a tool is reported by Skipped and hides no other. OpenAPI returns an *Error of code usage
// for a document that cannot be read at all and for settings that mean nothing.
func OpenAPI(cfg OpenAPIConfig) (*Set, error) {
	usage := func(format string, args ...any) (*Set, error) {
		return nil, protocol.Errorf(protocol.CodeUsage, "toolset %s: %s", cfg.Name, fmt.Sprintf(format, args...))
	}
	doc, err := parseDocument(cfg.Document)
	if err != nil {
		return usage("the document: %s", err)
	}
	if cfg.BaseURL == "" && !cfg.Servers {
		return usage("where is the API? Give its base URL, or allow the document's own servers")
	}
	b := &builder{cfg: &cfg, doc: doc}
	if err := b.prepare(); err != nil {
		return usage("%s", err)
	}
	all, skipped := doc.operations()
	chosen, err := choose(all, cfg.Operations)
	if err != nil {
		return usage("%s", err)
	}
	for _, key := range slices.Sorted(maps.Keys(cfg.Effects)) {
		if _, err := choose(all, []string{key}); err != nil {
			return usage("effects: %s", err)
		}
	}
	s := &Set{name: cfg.Name, client: b.client}
	if cfg.Operations == nil {
		s.skipped = skipped
	}
	owner := map[string]string{}
	for _, op := range chosen {
		t, err := b.build(op)
		if err == nil {
			if first, taken := owner[t.Name()]; taken {
				err = fmt.Errorf("its name %s is that of %s already", t.Name(), first)
			}
		}
		if err != nil {
			s.skipped = append(s.skipped, Skipped{Operation: op.String(), Reason: err.Error()})
			continue
		}
		owner[t.Name()] = op.String()
		s.tools = append(s.tools, t)
	}
	s.skipped = append(s.skipped, b.partly...)
	return s, nil
}

// Name is the configured one.
func (s *Set) Name() string { return s.name }

// Tools are the tools, in the order of paths and methods. The slice is the caller's.
func (s *Set) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return slices.Clone(s.tools), nil }

// Skipped are the chosen operations that are no tools, each with the reason, and what others of them lack.
func (s *Set) Skipped() []Skipped { return slices.Clone(s.skipped) }

// Close closes idle connections. The tools may be used afterwards.
func (s *Set) Close() error {
	s.client.close()
	return nil
}

// operation is one method of one path, not resolved.
type operation struct {
	id, method, path string
	node             map[string]any
	shared           any // parameters of the path
	servers          []any
}

func (o *operation) key() string { return o.method + " " + o.path }

func (o *operation) String() string {
	if o.id == "" {
		return visibleKey(o.key())
	}
	return visibleKey(o.key()) + " (" + visibleKey(o.id) + ")"
}

// visibleKey is a name of the document for people to read.
func visibleKey(s string) string {
	s = s[:min(len(s), 200)]
	if _, hidden := protocol.HiddenRune(s); hidden || strings.ContainsAny(s, "\r\n\t") {
		return strings.Trim(fmt.Sprintf("%+q", s), `"`)
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// operations are all operations of the document, by path and method, and the paths that cannot be read.
func (d *document) operations() ([]*operation, []Skipped) {
	var all []*operation
	var skipped []Skipped
	paths, _ := d.root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if strings.HasPrefix(path, "x-") {
			continue
		}
		item, ok := paths[path].(map[string]any)
		if ref, refers := item["$ref"].(string); ok && refers {
			target, kind, _, err := d.component(ref)
			if item, ok = target.(map[string]any); err == nil && (!ok || kind != "pathItems") {
				err = fmt.Errorf("it refers to %s as a path", quoteRef(ref))
			}
			if err != nil {
				skipped = append(skipped, Skipped{Operation: visibleKey(path), Reason: err.Error()})
				continue
			}
		}
		if !ok {
			skipped = append(skipped, Skipped{Operation: visibleKey(path), Reason: "it is no object"})
			continue
		}
		for _, method := range append(slices.Clone(methods), "TRACE") {
			node, ok := item[strings.ToLower(method)].(map[string]any)
			if !ok {
				continue
			}
			op := &operation{method: method, path: path, node: node, shared: item["parameters"]}
			op.id, _ = node["operationId"].(string)
			for _, holder := range []map[string]any{node, item, d.root} {
				if list, ok := holder["servers"].([]any); ok && len(list) > 0 {
					op.servers = list
					break
				}
			}
			all = append(all, op)
		}
	}
	return all, skipped
}

// fits reports whether an entry of OpenAPIConfig.Operations names the operation.
func (o *operation) fits(entry string) bool {
	return o.id != "" && matches(entry, o.id) || matches(entry, o.key())
}

// matches compares a text with a pattern in which * stands for any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		if !ok {
			return false
		}
		_, text, ok = strings.Cut(text, part)
	}
	return ok && strings.HasSuffix(text, last)
}

func choose(all []*operation, entries []string) ([]*operation, error) {
	if entries == nil {
		return all, nil
	}
	wanted := map[*operation]bool{}
	for _, entry := range entries {
		found := false
		for _, op := range all {
			if op.fits(entry) {
				wanted[op], found = true, true
			}
		}
		if !found {
			known := make([]string, 0, 2*len(all))
			for _, op := range all {
				known = append(known, op.id, op.key())
			}
			if near := protocol.Meant(entry, known); near != "" {
				return nil, fmt.Errorf("no operation is %q; did you mean %q?", entry, near)
			}
			return nil, fmt.Errorf("no operation is %q: an entry is an operationId, or a method and a path such as \"GET /pets\"", entry)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(op *operation) bool { return !wanted[op] }), nil
}

var errNoServer = errors.New("the document names no server; give the base URL")
