package strictyaml

import (
	"errors"
	"maps"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxFile is the size limit of a file in bytes.
const MaxFile = 1 << 20

// Document is one parsed file and the faults found in it so far. It is used by one goroutine.
type Document struct {
	file   string
	root   ast.Node
	faults Faults
}

// Parse reads a file's text. Faults of the syntax are kept for Err; the document is then empty.
func Parse(file string, text []byte) *Document {
	d := &Document{file: file}
	if len(text) > MaxFile {
		d.Fail(nil, "%d bytes are more than %d", len(text), MaxFile)
		return d
	}
	parsed, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		fault := Fault{File: file, Line: 1, Column: 1, Message: err.Error()}
		if e, ok := errors.AsType[yaml.Error](err); ok {
			fault.Message = e.GetMessage()
			if t := e.GetToken(); t != nil {
				fault.Line, fault.Column = t.Position.Line, t.Position.Column
			}
		}
		d.faults = append(d.faults, fault)
		return d
	}
	for i, doc := range parsed.Docs {
		if i > 0 && doc.Body != nil {
			d.Fail(doc.Body, "a second document: one file holds one")
			break
		}
		if i == 0 {
			d.root = doc.Body
		}
	}
	return d
}

// Root is the document's node; nil for an empty file.
func (d *Document) Root() ast.Node { return d.root }

// Fields hands each value of a mapping to the function that known has for its key. required keys must be there.
func (d *Document) Fields(n ast.Node, what string, known map[string]func(ast.Node), required ...string) {
	if n == nil {
		n = &ast.NullNode{}
	}
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		if isNull(n) && len(required) == 0 {
			return
		}
		d.failKind(n, what+" is a mapping of keys to values")
		return
	}
	seen := map[string]bool{}
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			d.Fail(v.Key, "keys of %s are plain words", what)
			continue
		}
		read := known[key.Value]
		switch {
		case seen[key.Value]:
			d.Fail(v.Key, "key %q is there twice", key.Value)
		case read == nil:
			names := slices.Sorted(maps.Keys(known))
			if near := closest(key.Value, names); near != "" {
				d.Fail(v.Key, "unknown key %q; did you mean %q?", key.Value, near)
			} else {
				d.Fail(v.Key, "unknown key %q; %s has %v", key.Value, what, names)
			}
		default:
			read(v.Value)
		}
		seen[key.Value] = true
	}
	for _, r := range required {
		if !seen[r] {
			d.Fail(n, "%s needs the key %q", what, r)
		}
	}
}

// Items hands each item of a list to read.
func (d *Document) Items(n ast.Node, what string, read func(ast.Node)) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		if !isNull(n) {
			d.failKind(n, what+" is a list")
		}
		return
	}
	for _, item := range list.Values {
		read(item)
	}
}

func isNull(n ast.Node) bool {
	_, ok := n.(*ast.NullNode)
	return ok || n == nil
}

func (d *Document) failKind(n ast.Node, want string) {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.Fail(n, "anchors, aliases and tags are not read here: write the value out")
	default:
		if n.GetToken() == nil {
			d.Fail(nil, "%s", want)
			return
		}
		d.Fail(n, "%s", want)
	}
}
