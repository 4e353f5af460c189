package tool_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"iter"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// able can do everything that a tool can.
type able struct{ runs }

var errAble = errors.New("it was called")

func (able) RunJSON(tool.Context, json.RawMessage) (json.RawMessage, error) { return nil, errAble }
func (able) AsksConfirmation(json.RawMessage) (bool, error)                 { return true, errAble }
func (able) ProcessRequest(tool.Context, *model.LLMRequest) error           { return errAble }
func (able) RunStream(tool.Context, any) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", errAble) }
}

// ableSet can do everything that a toolset can, and counts what it did.
type ableSet struct {
	set
	changed chan struct{}
	did     map[string]int
}

func (s *ableSet) Close() error             { s.did["Close"]++; return errAble }
func (s *ableSet) Changed() <-chan struct{} { s.did["Changed"]++; return s.changed }
func (s *ableSet) ProcessRequest(tool.Context, *model.LLMRequest) error {
	s.did["ProcessRequest"]++
	return errAble
}

// abilities are the interfaces of this package, and of others, that a tool and a toolset may have.
var (
	toolAbilities = map[string]reflect.Type{
		"Tool": reflect.TypeFor[tool.Tool](), "Runnable": reflect.TypeFor[tool.Runnable](), "RunnerJSON": reflect.TypeFor[tool.RunnerJSON](),
		"RunnerStream": reflect.TypeFor[tool.RunnerStream](), "Asker": reflect.TypeFor[tool.Asker](), "Configured": reflect.TypeFor[tool.Configured](),
		"RequestProcessor": reflect.TypeFor[tool.RequestProcessor](),
	}
	setAbilities = map[string]reflect.Type{
		"Toolset": reflect.TypeFor[tool.Toolset](), "Changing": reflect.TypeFor[tool.Changing](), "RequestProcessor": reflect.TypeFor[tool.RequestProcessor](),
		"Closer": reflect.TypeFor[io.Closer](),
	}
)

var layers = map[string]func(tool.Tool) tool.Tool{
	"ToolWithConfirmation": func(t tool.Tool) tool.Tool { return tool.ToolWithConfirmation(t, true, nil) },
	"ToolWithName":         func(t tool.Tool) tool.Tool { return tool.ToolWithName(t, "other") },
	"ToolWithDescription":  func(t tool.Tool) tool.Tool { return tool.ToolWithDescription(t, "Other.") },
	"ToolWithSettings":     func(t tool.Tool) tool.Tool { return tool.ToolWithSettings(t, func(*tool.Settings) {}) },
	"Aliased":              func(t tool.Tool) tool.Tool { return tool.Aliased(tool.ToolWithName(t, "a/b")) },
}

var setLayers = map[string]func(tool.Toolset) tool.Toolset{
	"FilterToolset":    func(s tool.Toolset) tool.Toolset { return tool.FilterToolset(s, tool.AllowedToolsPredicate(nil)) },
	"WithConfirmation": func(s tool.Toolset) tool.Toolset { return tool.WithConfirmation(s, true, nil) },
	"Prefix":           func(s tool.Toolset) tool.Toolset { return tool.Prefix(s, "fs") },
	"Rename":           func(s tool.Toolset) tool.Toolset { return tool.Rename(s, nil) },
	"WithSettings":     func(s tool.Toolset) tool.Toolset { return tool.WithSettings(s, func(string, *tool.Settings) {}) },
}

// A new interface or a new function that puts a layer around a tool belongs into the tables above.
func TestTheTablesOfAbilitiesAndLayersAreWhole(t *testing.T) {
	interfaces, functions := exported(t)
	known := slices.Collect(maps.Keys(toolAbilities))
	for name := range setAbilities {
		if name != "Closer" { // not of this package
			known = append(known, name)
		}
	}
	slices.Sort(known)
	if known = slices.Compact(known); !slices.Equal(interfaces, known) {
		t.Errorf("the package has the interfaces %v, the tables %v", interfaces, known)
	}
	tested := slices.Sorted(maps.Keys(layers))
	tested = append(tested, slices.Sorted(maps.Keys(setLayers))...)
	slices.Sort(tested)
	if !slices.Equal(functions, tested) {
		t.Errorf("the functions from tool to tool and from set to set are %v, the tables have %v", functions, tested)
	}
}

// exported lists the package's interfaces, and its functions from a Tool to a Tool and from a Toolset to a Toolset.
func exported(t *testing.T) (interfaces, functions []string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				in, out := d.Type.Params.List, d.Type.Results
				if d.Recv != nil || !d.Name.IsExported() || len(in) == 0 || out == nil || len(out.List) != 1 {
					continue
				}
				from, to := ident(in[0].Type), ident(out.List[0].Type)
				if from == to && (from == "Tool" || from == "Toolset") {
					functions = append(functions, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
						if _, is := s.Type.(*ast.InterfaceType); is {
							interfaces = append(interfaces, s.Name.Name)
						}
					}
				}
			}
		}
	}
	slices.Sort(interfaces)
	slices.Sort(functions)
	return interfaces, functions
}

func ident(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func TestALayerKeepsEveryAbilityOfATool(t *testing.T) { // AR-CORE-04
	below := able{runs{tool.Settings{Effect: tool.Read, Timeout: time.Second, Attempts: 7}}}
	for name, around := range layers {
		got := around(around(below)) // twice: a layer finds what is below another one
		for ability, want := range toolAbilities {
			if !reflect.TypeOf(below).Implements(want) {
				t.Fatalf("able lacks %s: the test shows nothing", ability)
			}
			if !found(got, want) {
				t.Errorf("%s loses %s", name, ability)
			}
		}
		if !got.IsLongRunning() || !strings.HasPrefix(tool.Original(got), "refund") {
			t.Errorf("%s: long-running: %v, original %s", name, got.IsLongRunning(), tool.Original(got))
		}
		s, _ := tool.As[tool.Configured](got)
		settings := s.Settings()
		settings.Confirm = false
		if settings != below.set {
			t.Errorf("%s: settings %+v", name, settings)
		}
		j, _ := tool.As[tool.RunnerJSON](got)
		a, _ := tool.As[tool.Asker](got)
		p, _ := tool.As[tool.RequestProcessor](got)
		r, _ := tool.As[tool.RunnerStream](got)
		_, ran := j.RunJSON(nil, nil)
		asks, asked := a.AsksConfirmation(nil)
		for _, streamed := range r.RunStream(nil, nil) {
			for what, err := range map[string]error{"RunJSON": ran, "AsksConfirmation": asked, "ProcessRequest": p.ProcessRequest(nil, nil), "RunStream": streamed} {
				if err != errAble || !asks {
					t.Errorf("%s: %s does not reach the tool: %v", name, what, err)
				}
			}
		}
		run, ok := got.(tool.Runnable) // also for whoever asserts
		if !ok || run.Declaration().Name != got.Name() {
			t.Errorf("%s: declared as %v, named %s", name, run, got.Name())
		}
	}
}

// found is As by a reflected type.
func found(t tool.Tool, ability reflect.Type) bool {
	for {
		if reflect.TypeOf(t).Implements(ability) {
			return true
		}
		layer, ok := t.(interface{ Unwrap() tool.Tool })
		if !ok {
			return false
		}
		t = layer.Unwrap()
	}
}

func TestALayerGivesAToolNoAbilityItLacks(t *testing.T) {
	for name, around := range layers {
		got := around(runs{})
		for _, ability := range []string{"RunnerJSON", "RunnerStream", "RequestProcessor"} {
			if found(got, toolAbilities[ability]) {
				t.Errorf("%s: a tool without %s has one", name, ability)
			}
		}
		if got := around(tool.Pool("lookup")); found(got, toolAbilities["Runnable"]) || tool.IsPool(got) && got.Name() != "lookup" {
			t.Errorf("%s: a pool became a %T", name, got)
		}
	}
}

func TestALayerKeepsEveryAbilityOfAToolset(t *testing.T) {
	for name, around := range setLayers {
		below := &ableSet{changed: make(chan struct{}), did: map[string]int{}}
		got := around(around(below))
		called := 0
		for ability, want := range setAbilities {
			if !reflect.TypeOf(below).Implements(want) {
				t.Fatalf("ableSet lacks %s: the test shows nothing", ability)
			}
			if !reflect.TypeOf(got).Implements(want) {
				t.Errorf("%s loses %s", name, ability)
				continue
			}
			for i := range want.NumMethod() {
				m := want.Method(i)
				if m.Name == "Name" || m.Name == "Tools" {
					continue
				}
				args := make([]reflect.Value, m.Type.NumIn())
				for j := range args {
					args[j] = reflect.Zero(m.Type.In(j))
				}
				below.did[m.Name] = 0
				out := reflect.ValueOf(got).MethodByName(m.Name).Call(args)
				if below.did[m.Name] != 1 || out[0].Interface() != any(errAble) && out[0].Interface() != any((<-chan struct{})(below.changed)) {
					t.Errorf("%s: %s was passed on %d times and answered %v", name, m.Name, below.did[m.Name], out)
				}
				called++
			}
		}
		if called < 3 || got.Name() != "inner" {
			t.Errorf("%s: %d methods were called, the set is named %s", name, called, got.Name())
		}
	}
}

func TestALayerAroundASimpleSetDoesNothingMore(t *testing.T) {
	for name, around := range setLayers {
		got := around(set{})
		if c := got.(tool.Changing).Changed(); c != nil {
			t.Errorf("%s: the list of a set that does not change changes", name)
		}
		if err := got.(io.Closer).Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := got.(tool.RequestProcessor).ProcessRequest(nil, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASetThatListsNothingNamesItself(t *testing.T) { // H52
	for name, around := range setLayers {
		if _, err := around(set{tools: []tool.Tool{nil}}).Tools(nil); err == nil || !strings.Contains(err.Error(), `"inner"`) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := around(set{err: errAble}).Tools(nil); !errors.Is(err, errAble) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNilsPanicWhereTheyArePassed(t *testing.T) {
	var (
		noTool tool.Tool
		noSet  tool.Toolset
	)
	for name, around := range layers {
		mustPanic(t, name, func() { around(noTool) })
	}
	for name, around := range setLayers {
		mustPanic(t, name, func() { around(noSet) })
	}
	mustPanic(t, "WithSettings", func() { tool.WithSettings(set{}, nil) })
	mustPanic(t, "ToolWithSettings", func() { tool.ToolWithSettings(runs{}, nil) })
}

func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: nil is taken", name)
		}
	}()
	f()
}

// audited is a layer of an author, who knows nothing of most abilities.
type audited struct{ tool.Tool }

func (a audited) Unwrap() tool.Tool { return a.Tool }

func TestALayerOfAnAuthorLosesNothingEither(t *testing.T) {
	got := tool.ToolWithName(audited{Tool: able{}}, "other")
	for ability, want := range toolAbilities {
		if !found(got, want) {
			t.Errorf("%s is lost", ability)
		}
	}
}
