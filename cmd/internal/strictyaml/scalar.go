package strictyaml

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// String reads text. Numbers and booleans are no text: a person who means them writes quotes.
func (d *Document) String(n ast.Node) string {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value
	case *ast.LiteralNode:
		return s.Value.Value
	}
	d.failKind(n, "a text is wanted here; put it in quotes")
	return ""
}

// Scalar reads text, a number or a boolean as it is written.
func (d *Document) Scalar(n ast.Node) string {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	return d.String(n)
}

// Int reads a whole number that is not negative.
func (d *Document) Int(n ast.Node) int {
	if i, ok := n.(*ast.IntegerNode); ok {
		if v, ok := i.Value.(uint64); ok && v <= 1<<31-1 {
			return int(v)
		}
	}
	d.failKind(n, "a whole number from 0 on is wanted here")
	return 0
}

// Bool reads true or false.
func (d *Document) Bool(n ast.Node) bool {
	if b, ok := n.(*ast.BoolNode); ok {
		return b.Value
	}
	d.failKind(n, "true or false is wanted here")
	return false
}

// Duration reads a duration with its unit: 500ms, 30s, 2m.
func (d *Document) Duration(n ast.Node) time.Duration {
	s, ok := n.(*ast.StringNode)
	if ok {
		if v, err := time.ParseDuration(s.Value); err == nil && v >= 0 {
			return v
		}
	}
	d.failKind(n, "a duration with its unit is wanted here: 500ms, 30s, 2m")
	return 0
}

// Strings reads a list of texts.
func (d *Document) Strings(n ast.Node, what string) []string {
	var out []string
	d.Items(n, what, func(item ast.Node) { out = append(out, d.Scalar(item)) })
	return out
}

// StringMap reads a mapping of words to texts.
func (d *Document) StringMap(n ast.Node, what string) map[string]string {
	out := map[string]string{}
	known := map[string]func(ast.Node){}
	for _, v := range pairs(n) {
		key := v.Key.String()
		known[key] = func(value ast.Node) { out[key] = d.Scalar(value) }
	}
	d.Fields(n, what, known)
	return out
}

// JSON reads any value as JSON, keys in their order.
func (d *Document) JSON(n ast.Node) json.RawMessage {
	var b bytes.Buffer
	d.writeJSON(&b, n)
	return b.Bytes()
}

func (d *Document) writeJSON(b *bytes.Buffer, n ast.Node) {
	switch v := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		b.WriteByte('{')
		seen := map[string]bool{}
		for i, pair := range pairs(v) {
			if i > 0 {
				b.WriteByte(',')
			}
			key := pair.Key.GetToken().Value
			if seen[key] {
				d.Fail(pair.Key, "key %q is there twice", key)
			}
			seen[key] = true
			quote(b, key)
			b.WriteByte(':')
			d.writeJSON(b, pair.Value)
		}
		b.WriteByte('}')
	case *ast.SequenceNode:
		b.WriteByte('[')
		for i, item := range v.Values {
			if i > 0 {
				b.WriteByte(',')
			}
			d.writeJSON(b, item)
		}
		b.WriteByte(']')
	case *ast.IntegerNode, *ast.FloatNode:
		text := strings.TrimPrefix(n.GetToken().Value, "+")
		if !json.Valid([]byte(text)) {
			d.Fail(n, "%s is no number of JSON", text)
			text = "0"
		}
		b.WriteString(text)
	case *ast.BoolNode:
		if v.Value {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	case *ast.NullNode, nil:
		b.WriteString("null")
	default:
		quote(b, d.String(n))
	}
}

func quote(b *bytes.Buffer, s string) {
	text, _ := json.Marshal(s)
	b.Write(text)
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}
