package skill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/toolfabric/toolfabric/protocol"
)

// Bounds of what the parser is given: its stack and its time grow faster than its input.
const (
	maxBrackets   = 16  // open in one another
	maxIndicators = 100 // in a row: "- - -"; a ruler in a text has some
)

// known are the keys of a frontmatter.
var known = []string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}

// parseYAML reads what stands between the separators. All faults are looked for; the first by its place is told.
func parseYAML(text []byte) (*Frontmatter, error) {
	switch {
	case !utf8.Valid(text):
		return nil, misplaced(2, 1, "the frontmatter is not UTF-8 text")
	case deep(text):
		return nil, misplaced(2, 1, "collections are nested deeper than %d", maxBrackets)
	}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		line, column, message := 2, 1, err.Error()
		if e, ok := errors.AsType[yaml.Error](err); ok {
			message = e.GetMessage()
			if t := e.GetToken(); t != nil && t.Position != nil {
				line, column = t.Position.Line+1, t.Position.Column
			}
		}
		return nil, misplaced(line, column, "not YAML: %s", strings.ReplaceAll(message, "\n", " "))
	}
	r := &reader{seen: map[string]ast.Node{}}
	var body ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			if body != nil {
				r.fault(d.Body, "a second document: there is one frontmatter")
				break
			}
			body = d.Body
		}
	}
	if body == nil {
		return nil, misplaced(2, 1, "the frontmatter is empty: it needs name and description")
	}
	fm := r.frontmatter(body)
	if len(r.faults) == 0 {
		r.check(fm)
	}
	if len(r.faults) > 0 {
		first := slices.MinFunc(r.faults, func(x, y *placed) int { return cmp.Or(cmp.Compare(x.line, y.line), cmp.Compare(x.column, y.column)) })
		return nil, fmt.Errorf("%w: %w", ErrInvalidFrontmatter, first)
	}
	return fm, nil
}

func deep(text []byte) bool {
	brackets, indicators := 0, 0
	for _, c := range text {
		switch c {
		case '[', '{':
			brackets++
		case ']', '}':
			brackets = max(brackets-1, 0)
		case '-', '?', ':':
			indicators++
		case ' ':
		default:
			indicators = 0
		}
		if brackets > maxBrackets || indicators > maxIndicators {
			return true
		}
	}
	return false
}

// reader puts nodes into a Frontmatter and collects what is wrong on the way.
type reader struct {
	faults []*placed
	seen   map[string]ast.Node // values by key
}

// fault notes something at a node. The first separator is a line of the file too.
func (r *reader) fault(at ast.Node, format string, args ...any) {
	p := &placed{line: 2, column: 1, message: fmt.Sprintf(format, args...)}
	if at != nil && at.GetToken() != nil && at.GetToken().Position != nil {
		p.line, p.column = max(at.GetToken().Position.Line, 1)+1, max(at.GetToken().Position.Column, 1)
	}
	r.faults = append(r.faults, p)
}

func (r *reader) frontmatter(body ast.Node) *Frontmatter {
	fm := &Frontmatter{}
	pairs, ok := mapping(body)
	if !ok {
		r.fault(body, "the frontmatter is no mapping of keys to values")
		return fm
	}
	for _, pair := range pairs {
		key, ok := r.key(pair, r.seen)
		if !ok {
			continue
		}
		switch key {
		case "name":
			fm.Name = r.text(key, pair.Value)
		case "description":
			fm.Description = r.text(key, pair.Value)
		case "license":
			fm.License = r.text(key, pair.Value)
		case "compatibility":
			fm.Compatibility = r.text(key, pair.Value)
		case "metadata":
			fm.Metadata = r.texts(key, pair.Value)
		case "allowed-tools":
			fm.AllowedTools = r.tools(pair.Value)
		default:
			hint := ""
			if meant := protocol.Meant(key, known); meant != "" {
				hint = fmt.Sprintf("; did you mean %s?", meant)
			}
			r.fault(pair.Key, "unknown key %.80q%s; what is your own belongs under metadata", key, hint)
		}
	}
	for _, key := range known[:2] {
		if r.seen[key] == nil {
			r.fault(nil, "%s is missing", key)
		}
	}
	return fm
}

// check is Validate with the places of what it refuses.
func (r *reader) check(fm *Frontmatter) {
	if wrong := nameFault(fm.Name); wrong != "" {
		r.fault(r.seen["name"], "name %s", wrong)
	}
	if wrong := textFault(fm.Description, 1, MaxDescription); wrong != "" {
		r.fault(r.seen["description"], "description %s", wrong)
	}
	if wrong := textFault(fm.License, 0, MaxFrontmatter); wrong != "" {
		r.fault(r.seen["license"], "license %s", wrong)
	}
	if wrong := textFault(fm.Compatibility, 0, MaxCompatibility); wrong != "" {
		r.fault(r.seen["compatibility"], "compatibility %s", wrong)
	}
}

// key is a pair's key, if it is a new one.
func (r *reader) key(pair *ast.MappingValueNode, seen map[string]ast.Node) (string, bool) {
	switch k := pair.Key.(type) {
	case *ast.StringNode:
		if seen[k.Value] != nil {
			r.fault(pair.Key, "key %.80q is there twice", k.Value)
			return "", false
		}
		if seen[k.Value] = pair.Value; pair.Value == nil {
			seen[k.Value] = pair.Key
		}
		return k.Value, true
	case *ast.MergeKeyNode:
		r.fault(pair.Key, "merge keys are not accepted: write the keys out")
	default:
		r.fault(pair.Key, "a key is plain text")
	}
	return "", false
}

// text is a scalar as it is written: a version like 1.0 is text, though YAML takes it for a number. Nothing is "".
func (r *reader) text(key string, n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value
	case *ast.NullNode, nil:
		return ""
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		r.fault(n, "anchors, aliases and tags are not accepted: write the value out")
	default:
		r.fault(n, "%s is no text; quote it if it is meant as text", key)
	}
	return ""
}

func (r *reader) texts(key string, n ast.Node) map[string]string {
	pairs, ok := mapping(n)
	if _, null := n.(*ast.NullNode); null || n == nil {
		return nil
	}
	if !ok {
		r.fault(n, "%s is no mapping of keys to texts", key)
		return nil
	}
	m := make(map[string]string, len(pairs))
	seen := map[string]ast.Node{}
	for _, pair := range pairs {
		if name, ok := r.key(pair, seen); ok {
			m[name] = r.text(key+"."+name, pair.Value)
		}
	}
	return m
}

// tools are a list, or a text with blanks or commas between them.
func (r *reader) tools(n ast.Node) []string {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return split(r.text("allowed-tools", n))
	}
	var tools []string
	for _, item := range list.Values {
		if t := r.text("allowed-tools", item); t != "" {
			tools = append(tools, t)
		}
	}
	return tools
}

// split cuts at blanks and commas that are not in parentheses: Bash(git add:*) is one.
func split(text string) []string {
	open := 0
	return strings.FieldsFunc(text, func(c rune) bool {
		switch c {
		case '(':
			open++
		case ')':
			open = max(open-1, 0)
		}
		return open == 0 && (c == ',' || unicode.IsSpace(c))
	})
}

// mapping is the pairs of a mapping. The parser writes one of a single pair in two ways.
func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	return nil, false
}
