package scripted

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"text/template"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/protocol"
)

// MaxSize is the largest script in bytes.
const MaxSize = 1 << 20

// Load reads the script in a file. Faults name the file, line and column, all of them at once.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if bad, ok := errors.AsType[*fs.PathError](err); ok {
			err = bad.Err // the path is named here
		}
		return nil, protocol.Errorf(protocol.CodeUsage, "the script %s cannot be read: %v", path, err)
	}
	s, errs := parse(data)
	if len(errs) > 0 {
		for i, e := range errs {
			errs[i] = fmt.Errorf("%s:%w", path, e)
		}
		return nil, protocol.Errorf(protocol.CodeUsage, "%s", errors.Join(errs...))
	}
	return s, nil
}

// Parse reads a script. It returns an *Error of code usage that lists every fault as line:column: text, one a line.
func Parse(data []byte) (*Script, error) {
	s, errs := parse(data)
	if len(errs) > 0 {
		return nil, protocol.Errorf(protocol.CodeUsage, "%s", errors.Join(errs...))
	}
	return s, nil
}

func parse(data []byte) (*Script, []error) {
	if len(data) > MaxSize {
		return nil, []error{fmt.Errorf("1:1: %d bytes are more than %d", len(data), MaxSize)}
	}
	r := &reader{}
	root := r.document(data)
	if root == nil {
		return nil, r.errs
	}
	s := &Script{}
	rules, turns := false, false
	r.mapping(root, "a script", map[string]func(ast.Node){
		"name": func(n ast.Node) { r.str(n, "name") },
		"rules": func(n ast.Node) {
			rules = true
			r.list(n, "rules", func(n ast.Node) { s.rules = append(s.rules, r.rule(n, len(s.rules))) })
		},
		"turns": func(n ast.Node) {
			turns = true
			r.list(n, "turns", func(n ast.Node) { s.turns = append(s.turns, r.turn(n)) })
		},
	})
	if rules == turns && len(r.errs) == 0 {
		r.fail(root, "a script has either rules or turns")
	}
	if len(s.rules)+len(s.turns) == 0 && len(r.errs) == 0 {
		r.fail(root, "the script has nothing to say")
	}
	return s, r.errs
}

func (r *reader) rule(n ast.Node, index int) rule {
	out := rule{name: fmt.Sprintf("rule %d", index+1), chunks: 1}
	turn, timed := false, false
	fields := map[string]func(ast.Node){
		"name": func(n ast.Node) { out.name = r.str(n, "name") },
		"user": func(n ast.Node) { out.user = r.regexp(n, "user") },
		"turn": func(n ast.Node) { out.turn, turn = r.integer(n, "turn", 0, 1_000_000), true },
		"results": func(n ast.Node) {
			timed = true
			r.pairs(n, "results", func(tool string, _, v ast.Node) {
				out.results = append(out.results, resultMatch{tool, r.regexp(v, "a result's condition")})
			})
		},
		"after": func(n ast.Node) {
			timed = true
			r.list(n, "after", func(n ast.Node) { out.after = append(out.after, r.str(n, "a tool's name")) })
		},
		"text":         func(n ast.Node) { out.text = r.template(n, r.str(n, "text")) },
		"thought":      func(n ast.Node) { out.thought = r.template(n, r.str(n, "thought")) },
		"calls":        func(n ast.Node) { r.list(n, "calls", func(n ast.Node) { out.calls = append(out.calls, r.call(n)) }) },
		"signature":    func(n ast.Node) { out.signature = r.base64(n, "signature") },
		"chunks":       func(n ast.Node) { out.chunks = r.integer(n, "chunks", 1, 10_000) },
		"split_calls":  func(n ast.Node) { out.splitCalls = r.boolean(n, "split_calls") },
		"partial_args": func(n ast.Node) { out.partialArgs = r.boolean(n, "partial_args") },
	}
	r.behaviour(fields, &out.behaviour)
	r.mapping(n, "a rule", fields)
	out.anyTurn = !turn && timed
	if out.text == nil && len(out.calls) == 0 && (out.fault == nil || out.fault.times > 0) {
		r.fail(n, "%s has neither text nor calls", out.name)
	}
	return out
}

// behaviour adds the keys that rules and turns have in common.
func (r *reader) behaviour(fields map[string]func(ast.Node), b *behaviour) {
	fields["delay"] = func(n ast.Node) { b.delay = r.duration(n, "delay") }
	fields["cut"] = func(n ast.Node) { b.cut = r.boolean(n, "cut") }
	fields["error"] = func(n ast.Node) {
		b.fault = &fault{}
		r.mapping(n, "error", map[string]func(ast.Node){
			"status":      func(n ast.Node) { b.fault.status = r.integer(n, "status", 400, 599) },
			"message":     func(n ast.Node) { b.fault.message = r.str(n, "message") },
			"retry_after": func(n ast.Node) { b.fault.retryAfter = r.duration(n, "retry_after") },
			"times":       func(n ast.Node) { b.fault.times = r.integer(n, "times", 1, 1_000_000) },
		})
		if b.fault.status == 0 {
			r.fail(n, "error has no status")
		}
		if b.fault.message == "" {
			b.fault.message = "scripted: " + http.StatusText(b.fault.status)
		}
	}
}

func (r *reader) call(n ast.Node) callRule {
	out := callRule{args: map[string]any{}}
	r.mapping(n, "a call", map[string]func(ast.Node){
		"tool": func(n ast.Node) { out.tool = r.str(n, "tool") },
		"args": func(n ast.Node) {
			out.args = r.value(n, 0, r.maybeTemplate)
			if _, ok := out.args.(map[string]any); !ok {
				r.fail(n, "args is a mapping")
			}
		},
		"each": func(n ast.Node) { out.each = r.each(n) },
	})
	if out.tool == "" {
		r.fail(n, "a call names its tool")
	}
	return out
}

func (r *reader) each(n ast.Node) *each {
	out := &each{as: "item", split: regexp.MustCompile(`[,\s]+`)}
	r.mapping(n, "each", map[string]func(ast.Node){
		"of":    func(n ast.Node) { out.of = r.template(n, r.str(n, "of")) },
		"split": func(n ast.Node) { out.split = r.regexp(n, "split") },
		"as":    func(n ast.Node) { out.as = r.str(n, "as") },
	})
	if out.of == nil {
		r.fail(n, "each has no of: what is split")
	}
	return out
}

func (r *reader) regexp(n ast.Node, what string) *regexp.Regexp {
	text := r.str(n, what)
	re, err := regexp.Compile(text)
	if err != nil {
		r.fail(n, "%s: %v", what, err)
		return regexp.MustCompile(`$.^`)
	}
	return re
}

func (r *reader) template(n ast.Node, text string) *template.Template {
	t, err := template.New("").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		r.fail(n, "%v", err)
	}
	return t
}

// maybeTemplate keeps text without actions as it is.
func (r *reader) maybeTemplate(n ast.Node, s string) any {
	if !strings.Contains(s, "{{") {
		return s
	}
	return r.template(n, s)
}

func (r *reader) base64(n ast.Node, what string) []byte {
	b, err := base64.StdEncoding.DecodeString(r.str(n, what))
	if err != nil {
		r.fail(n, "%s is base64: %v", what, err)
	}
	return b
}
