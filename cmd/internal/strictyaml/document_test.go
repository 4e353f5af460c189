package strictyaml

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/protocol"
)

type sample struct {
	name  string
	n     int
	on    bool
	wait  time.Duration
	words []string
	env   map[string]string
	raw   string
}

func read(text string) (sample, error) {
	d := Parse("f.yaml", []byte(text))
	var s sample
	d.Fields(d.Root(), "the file", map[string]func(ast.Node){
		"name":  func(n ast.Node) { s.name = d.String(n) },
		"count": func(n ast.Node) { s.n = d.Int(n) },
		"on":    func(n ast.Node) { s.on = d.Bool(n) },
		"wait":  func(n ast.Node) { s.wait = d.Duration(n) },
		"words": func(n ast.Node) { s.words = d.Strings(n, "words") },
		"env":   func(n ast.Node) { s.env = d.StringMap(n, "env") },
		"raw":   func(n ast.Node) { s.raw = string(d.JSON(n)) },
	}, "name")
	return s, d.Err()
}

func TestEveryKindOfValueIsRead(t *testing.T) {
	s, err := read("name: a\ncount: 3\non: true\nwait: 2m\nwords: [x, 1]\nenv: {A: b, C: 4}\nraw:\n  b: [1, 2.5, null, true]\n  a: |\n    text\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.name != "a" || s.n != 3 || !s.on || s.wait != 2*time.Minute || strings.Join(s.words, ",") != "x,1" || s.env["A"] != "b" || s.env["C"] != "4" {
		t.Errorf("%+v", s)
	}
	if s.raw != `{"b":[1,2.5,null,true],"a":"text\n"}` {
		t.Errorf("raw: %s", s.raw)
	}
}

func TestAllFaultsAreToldWithTheirPlace(t *testing.T) {
	_, err := read("nmae: a\ncount: -1\ncount: 2\non: yes please\nwait: 5\nwords: x\nenv: [1]\n")
	if protocol.CodeOf(err) != protocol.CodeUsage {
		t.Fatal(err)
	}
	for _, want := range []string{
		`f.yaml:1:1: unknown key "nmae"; did you mean "name"?`,
		`f.yaml:1:5: the file needs the key "name"`,
		`f.yaml:2:8: a whole number`,
		`f.yaml:3:1: key "count" is there twice`,
		`f.yaml:4:5: true or false`,
		`f.yaml:5:7: a duration with its unit`,
		`f.yaml:6:8: words is a list`,
		`f.yaml:7:6: env is a mapping`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
}

func TestWhatHidesMeaningIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"second document": "name: a\n---\nname: b\n",
		"alias":           "name: &x a\nwords: *x\n",
		"tag":             "name: !!binary aGk=\n",
		"syntax":          "name: [a\n",
		"empty":           "",
		"list":            "- a\n",
		"merge":           "name: a\n<<: {count: 1}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := read(text); protocol.CodeOf(err) != protocol.CodeUsage {
				t.Errorf("read %+v, %v", s, err)
			}
		})
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add("name: a\nraw: {a: [1, {b: c}]}\nenv: {X: 1}\n")
	f.Add("a: &x [*x]\n---\n? b\n: c\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := read(text); err != nil && protocol.CodeOf(err) != protocol.CodeUsage {
			t.Fatal(err)
		}
	})
}
