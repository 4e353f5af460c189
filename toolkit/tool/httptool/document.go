package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/toolfabric/toolfabric/protocol"
)

// Limits of an OpenAPI document.
const (
	MaxDocument  = 16 << 20 // in bytes
	maxDepth     = 128      // of nested objects and lists
	maxKeys      = 2_000_000
	maxOperation = 1 << 20 // of what one operation refers to, as JSON, in bytes
)

// document is an OpenAPI document as a tree of maps, lists, texts, json.Numbers, booleans and nil. Nothing in it is resolved.
type document struct {
	root  map[string]any
	newer bool // 3.1 or later
}

// parseDocument reads JSON or YAML. Keys that are there twice are refused, as parsers differ about them; so are anchors,
// aliases and tags of YAML, with which a small file says something huge.
func parseDocument(text []byte) (*document, error) {
	if len(text) > MaxDocument {
		return nil, fmt.Errorf("%d bytes are more than %d", len(text), MaxDocument)
	}
	tree, err := parseTree(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, errors.New("it is no mapping of keys to values")
	}
	version, _ := root["openapi"].(string)
	if n, ok := root["openapi"].(json.Number); ok {
		version = n.String()
	}
	switch {
	case root["swagger"] != nil:
		return nil, errors.New("it is of Swagger 2.0: convert it to OpenAPI 3 first")
	case !strings.HasPrefix(version, "3."):
		return nil, fmt.Errorf("its version, the key openapi, is %.20q: it is 3.0 or later", version)
	}
	return &document{root: root, newer: !strings.HasPrefix(version, "3.0")}, nil
}

func parseTree(text []byte) (any, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		err := protocol.Check(trimmed, protocol.Limits{Size: MaxDocument, Depth: maxDepth, Keys: maxKeys})
		if err == nil {
			return protocol.Tree(trimmed)
		}
		if json.Valid(trimmed) {
			return nil, errors.New(protocol.ProblemOf(err).Message)
		}
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, fmt.Errorf("it is neither JSON nor YAML: %w", err)
	}
	if len(node.Content) == 0 {
		return nil, errors.New("it is empty")
	}
	return treeOf(node.Content[0], 0)
}

// treeOf makes a tree of YAML, as JSON has it.
func treeOf(n *yaml.Node, depth int) (any, error) {
	at := func(format string, args ...any) error {
		return fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
	}
	switch {
	case depth > maxDepth:
		return nil, at("nested deeper than %d", maxDepth)
	case n.Anchor != "" || n.Kind == yaml.AliasNode:
		return nil, at("anchors and aliases are not read: write the value out, or use $ref")
	case n.Style&yaml.TaggedStyle != 0:
		return nil, at("tags are not read")
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return nil, at("a key is no plain word")
			}
			if _, twice := m[key.Value]; twice {
				return nil, fmt.Errorf("line %d: key %q is there twice", key.Line, key.Value)
			}
			v, err := treeOf(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			m[key.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			v, err := treeOf(item, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
			return nil, nil
		case "!!bool":
			return strconv.ParseBool(strings.ToLower(n.Value))
		case "!!int", "!!float":
			if json.Valid([]byte(n.Value)) {
				return json.Number(n.Value), nil
			}
		}
		return n.Value, nil
	}
	return nil, at("it cannot be read")
}

// component finds what a reference points at, which is a component of the document. It is returned with its kind and name.
func (d *document) component(ref string) (target any, kind, name string, err error) {
	rest, ok := strings.CutPrefix(ref, "#/components/")
	if !ok {
		if strings.HasPrefix(ref, "#") {
			return nil, "", "", fmt.Errorf("it refers to %s, and only #/components/... is followed", quoteRef(ref))
		}
		return nil, "", "", fmt.Errorf("it refers to %s, outside the document, which is not loaded", quoteRef(ref))
	}
	kind, name, ok = strings.Cut(rest, "/")
	if !ok || strings.Contains(name, "/") {
		return nil, "", "", fmt.Errorf("it refers to %s, and only whole components are followed", quoteRef(ref))
	}
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	components, _ := d.root["components"].(map[string]any)
	all, _ := components[kind].(map[string]any)
	target, ok = all[name]
	if !ok {
		return nil, "", "", fmt.Errorf("it refers to %s, which is not there", quoteRef(ref))
	}
	return target, kind, name, nil
}

func quoteRef(ref string) string { return strconv.Quote(head([]byte(ref[:min(len(ref), 100)]))) }

// closure collects the components that v refers to, directly or through others.
func (d *document) closure(v any, into map[string]map[string]any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := d.closure(item, into); err != nil {
				return err
			}
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			target, kind, name, err := d.component(ref)
			if err != nil {
				return err
			}
			if _, done := into[kind][name]; !done {
				if into[kind] == nil {
					into[kind] = map[string]any{}
				}
				into[kind][name] = target
				if err := d.closure(target, into); err != nil {
					return err
				}
			}
		}
		for key, item := range v {
			if opaque[key] {
				continue
			}
			if err := d.closure(item, into); err != nil {
				return err
			}
		}
	}
	return nil
}

// opaque are keys whose values are data, in which $ref means nothing.
var opaque = map[string]bool{"example": true, "examples": true, "default": true, "enum": true, "const": true}
