package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Tool is a tool that is ready to run. It may run many calls at once.
type Tool struct {
	tool   tool.Runnable
	json   tool.RunnerJSON // nil when the tool has only Run
	asker  tool.Asker      // nil when the tool never asks by its arguments
	decl   protocol.Declaration
	digest string
	schema *Schema
	stuck  atomic.Int64
}

// New checks t and makes it ready to run. It returns an *Error: bad_name for the name, unsupported for a tool that cannot
// run on a worker, bad_declaration for a schema or settings that are refused, and for code that panics when it is asked for them.
func New(t tool.Tool) (made *Tool, err error) {
	defer func() {
		if r := recover(); r != nil {
			made, err = nil, protocol.Errorf(protocol.CodeBadDeclaration, "the tool panicked when it was asked for its declaration: %v", r)
		}
	}()
	if t == nil {
		return nil, protocol.Errorf(protocol.CodeBadDeclaration, "the tool is nil")
	}
	name := t.Name()
	if err := protocol.CheckName(name); err != nil {
		return nil, err
	}
	r, ok := tool.AsRunnable(t)
	if _, shapes := tool.As[tool.RequestProcessor](t); shapes {
		return nil, protocol.Errorf(protocol.CodeUnsupported, "tool %s shapes model requests (ProcessRequest), which happens in the coordinator and not on a worker: "+
			"list it among the agent's own tools, or give the worker a tool without ProcessRequest", name)
	}
	if !ok {
		return nil, protocol.Errorf(protocol.CodeUnsupported, "tool %s cannot run: it lacks Declaration and Run; functiontool.New makes a tool from a function", name)
	}
	decl, err := declare(t, r)
	if err != nil {
		return nil, err
	}
	schema, err := CompileSchema(decl.Parameters)
	if err != nil {
		return nil, inTool(name, err)
	}
	if decl.Response != nil {
		if _, err := CompileOutput(decl.Response); err != nil {
			return nil, inTool(name, err)
		}
	}
	w := &Tool{tool: r, decl: decl, digest: decl.Digest(), schema: schema}
	w.json, _ = tool.As[tool.RunnerJSON](t)
	w.asker, _ = tool.As[tool.Asker](t)
	return w, nil
}

// Declaration is the tool as its worker registers it.
func (t *Tool) Declaration() protocol.Declaration { return t.decl }

// Digest identifies the declaration.
func (t *Tool) Digest() string { return t.digest }

// Schema checks the tool's arguments.
func (t *Tool) Schema() *Schema { return t.schema }

// Stuck is how many executions were left behind because they did not end with their context, and still run.
func (t *Tool) Stuck() int { return int(t.stuck.Load()) }

func declare(t tool.Tool, r tool.Runnable) (protocol.Declaration, error) {
	name := t.Name()
	d := protocol.Declaration{V: protocol.Version, Name: name, Description: t.Description(), LongRunning: t.IsLongRunning()}
	fd := r.Declaration()
	if fd == nil {
		return d, protocol.Errorf(protocol.CodeBadDeclaration, "tool %s: it has no declaration", name)
	}
	if fd.Name != name {
		return d, protocol.Errorf(protocol.CodeBadDeclaration, "tool %s: its declaration has another name, %q", name, fd.Name)
	}
	if fd.Description != "" {
		d.Description = fd.Description
	}
	var err error
	if d.Parameters, err = schemaOf(fd.ParametersJsonSchema, fd.Parameters); err != nil {
		return d, protocol.Wrap(err, protocol.CodeBadDeclaration, "tool %s: parameters: %s", name, err)
	}
	if d.Parameters, err = withProperties(d.Parameters); err != nil {
		return d, protocol.Wrap(err, protocol.CodeBadDeclaration, "tool %s: parameters: %s", name, err)
	}
	if d.Response, err = schemaOf(fd.ResponseJsonSchema, fd.Response); err != nil {
		return d, protocol.Wrap(err, protocol.CodeBadDeclaration, "tool %s: response: %s", name, err)
	}
	d.Effect = protocol.EffectAtMostOnce
	if c, ok := tool.As[tool.Configured](t); ok {
		s := c.Settings()
		if s.Effect != "" {
			d.Effect = s.Effect
		}
		d.Confirm, d.Attempts, d.MaxActive = s.Confirm, s.Attempts, s.MaxActive
		d.QueueTimeout, d.Timeout, d.ParkTimeout = millis(s.QueueTimeout), millis(s.Timeout), millis(s.ParkTimeout)
	}
	return d, d.Check()
}

// millis rounds up, so that a timeout that was asked for never becomes 0, which means the default.
func millis(d time.Duration) int64 {
	if d > 0 {
		return int64(math.Ceil(float64(d) / float64(time.Millisecond)))
	}
	return d.Milliseconds()
}

func schemaOf(js any, typed *genai.Schema) (json.RawMessage, error) {
	switch {
	case js != nil && typed != nil:
		return nil, errors.New("both a JSON schema and a typed schema are set; leave one out")
	case typed != nil:
		js = fromTyped(typed)
	case js == nil:
		return nil, nil
	}
	b, err := json.Marshal(js)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(b, []byte("null")) {
		return nil, nil // a typed nil
	}
	return b, nil
}

// withProperties writes the properties that a schema without arguments may leave out: servers refuse it otherwise.
func withProperties(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	var root map[string]json.RawMessage
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, errors.New("the schema is not a JSON object")
	}
	if _, ok := root["properties"]; ok || string(root["type"]) != `"object"` {
		return raw, nil
	}
	root["properties"] = json.RawMessage("{}")
	return json.Marshal(root)
}

// fromTyped writes Gemini's typed schema as JSON Schema: lower-case types, nullable as a type of its own.
func fromTyped(s *genai.Schema) map[string]any {
	b, _ := json.Marshal(s)
	var m map[string]any
	_ = json.Unmarshal(b, &m)
	delete(m, "propertyOrdering")
	if s.Type != "" && s.Type != genai.TypeUnspecified {
		m["type"] = strings.ToLower(string(s.Type))
		if s.Nullable != nil && *s.Nullable {
			m["type"] = []string{strings.ToLower(string(s.Type)), "null"}
			if enum, ok := m["enum"].([]any); ok {
				m["enum"] = append(enum, nil)
			}
		}
	} else {
		delete(m, "type")
	}
	delete(m, "nullable")
	if ex, ok := m["example"]; ok {
		delete(m, "example")
		m["examples"] = []any{ex}
	}
	for key, n := range map[string]*int64{
		"maxLength": s.MaxLength, "minLength": s.MinLength, "maxItems": s.MaxItems, "minItems": s.MinItems,
		"maxProperties": s.MaxProperties, "minProperties": s.MinProperties,
	} {
		if n != nil {
			m[key] = *n // genai writes 64-bit integers as strings
		}
	}
	if s.Items != nil {
		m["items"] = fromTyped(s.Items)
	}
	if len(s.AnyOf) > 0 {
		branches := make([]any, len(s.AnyOf))
		for i, a := range s.AnyOf {
			branches[i] = fromTyped(a)
		}
		m["anyOf"] = branches
	}
	if s.Properties != nil {
		props := map[string]any{}
		for name, p := range s.Properties {
			props[name] = fromTyped(p)
		}
		m["properties"] = props
	}
	return m
}

func inTool(name string, err error) error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return &protocol.Error{Code: e.Code, Public: "tool " + name + ": " + e.Public, Err: e.Err}
	}
	return err
}
