package tool_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// runs, decodes and shapes are tools that can do one thing more each.
type runs struct{ set tool.Settings }

func (runs) Name() string              { return "refund" }
func (runs) Description() string       { return "Refunds an order." }
func (runs) IsLongRunning() bool       { return true }
func (r runs) Settings() tool.Settings { return r.set }
func (runs) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: "refund"}
}
func (runs) Run(tool.Context, any) (map[string]any, error) { return map[string]any{"ran": "Run"}, nil }

type decodes struct{ runs }

func (decodes) RunJSON(tool.Context, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`"RunJSON"`), nil
}

type shapes struct{ runs }

func (shapes) ProcessRequest(tool.Context, *model.LLMRequest) error { return errors.New("shaped") }

type both struct {
	decodes
	shapes_ shapes
}

func (b both) ProcessRequest(ctx tool.Context, req *model.LLMRequest) error {
	return b.shapes_.ProcessRequest(ctx, req)
}

// careful asks about orders by itself.
type careful struct {
	runs
	err error
}

func (c careful) AsksConfirmation(args json.RawMessage) (bool, error) {
	return string(args) == `{"order":"big"}`, c.err
}

// preload only shapes requests.
type preload struct{ tool.Tool }

func (preload) ProcessRequest(tool.Context, *model.LLMRequest) error { return nil }

func TestConfirmedToolKeepsEverythingElse(t *testing.T) {
	settings := tool.Settings{Effect: tool.Read, Timeout: time.Second, Attempts: 7, ParkTimeout: time.Hour}
	plain := runs{settings}
	for name, c := range map[string]struct {
		tool           tool.Tool
		decode, shapes bool
	}{
		"runs": {plain, false, false}, "decodes": {decodes{plain}, true, false}, "shapes": {shapes{plain}, false, true}, "both": {both{decodes: decodes{plain}}, true, true},
	} {
		got := tool.ToolWithConfirmation(c.tool, true, nil)
		want := settings
		want.Confirm = true
		if got.Name() != "refund" || got.Description() != "Refunds an order." || !got.IsLongRunning() || got.(tool.Configured).Settings() != want {
			t.Errorf("%s: %s, %+v", name, got.Name(), got.(tool.Configured).Settings())
		}
		r := got.(tool.Runnable)
		if out, err := r.Run(nil, nil); r.Declaration().Name != "refund" || err != nil || !reflect.DeepEqual(out, map[string]any{"ran": "Run"}) {
			t.Errorf("%s: %v, %v", name, out, err)
		}
		j, ok := tool.As[tool.RunnerJSON](got)
		if ok != c.decode {
			t.Errorf("%s: RunnerJSON: %v", name, ok)
		} else if ok {
			if out, err := j.RunJSON(nil, nil); string(out) != `"RunJSON"` || err != nil {
				t.Errorf("%s: %s, %v", name, out, err)
			}
		}
		p, ok := tool.As[tool.RequestProcessor](got)
		if ok != c.shapes {
			t.Errorf("%s: RequestProcessor: %v", name, ok)
		} else if ok && p.ProcessRequest(nil, nil) == nil {
			t.Errorf("%s: the request is not shaped", name)
		}
	}
}

func TestConfirmationByFlagAndProvider(t *testing.T) {
	big := func(name string, in any) bool { return name == "refund" && in.(map[string]any)["amount"] == 5.0 }
	broken := errors.New("no rate")
	for name, c := range map[string]struct {
		tool     tool.Tool
		require  bool
		provider tool.ConfirmationProvider
		args     string
		flag     bool // the declaration asks
		asks     bool
		err      error
	}{
		"neither":                           {tool: runs{}},
		"the flag":                          {tool: runs{}, require: true, flag: true},
		"a provider that asks":              {tool: runs{}, provider: big, args: `{"amount":5}`, asks: true},
		"a provider that does not":          {tool: runs{}, provider: big, args: `{"amount":4}`},
		"a provider overrides the flag":     {tool: runs{}, require: true, provider: big, args: `{"amount":4}`},
		"but not the tool's own":            {tool: runs{tool.Settings{Confirm: true}}, provider: big, args: `{"amount":4}`, flag: true},
		"nor the tool's own by arguments":   {tool: careful{}, provider: big, args: `{"order":"big"}`, asks: true},
		"the flag beside the tool's own":    {tool: careful{}, require: true, args: `{"order":"small"}`, flag: true},
		"what the tool cannot tell is told": {tool: careful{err: broken}, provider: big, err: broken},
	} {
		if c.args == "" {
			c.args = `{}`
		}
		got := tool.ToolWithConfirmation(c.tool, c.require, c.provider)
		asks, err := got.(tool.Asker).AsksConfirmation(json.RawMessage(c.args))
		if flag := got.(tool.Configured).Settings().Confirm; flag != c.flag || asks != c.asks || !errors.Is(err, c.err) {
			t.Errorf("%s: flag %v, asks %v, %v", name, flag, asks, err)
		}
	}
}

func TestToolsThatDoNotRunHereAreNotGatedInSilence(t *testing.T) {
	p := tool.ToolWithConfirmation(tool.Pool("lookup"), true, nil)
	if _, runs := p.(tool.Runnable); runs || tool.IsPool(p) || p.Name() != "lookup" {
		t.Errorf("%T goes on as a pool without its question", p)
	}
	pre := preload{tool.Pool("preload")}
	if got := tool.ToolWithConfirmation(pre, true, nil); got != tool.Tool(pre) {
		t.Errorf("a tool that is never called became a %T", got)
	}
}

func TestWithConfirmationWrapsEachToolOfASet(t *testing.T) {
	ts := tool.WithConfirmation(set{tools: []tool.Tool{runs{}, careful{}}}, true, nil)
	got, err := ts.Tools(nil)
	if err != nil || ts.Name() != "inner" || len(got) != 2 {
		t.Fatalf("%v, %v of %s", got, err, ts.Name())
	}
	for _, one := range got {
		if !one.(tool.Configured).Settings().Confirm {
			t.Errorf("%T runs unasked", one)
		}
	}
	broken := errors.New("no connection")
	if _, err := tool.WithConfirmation(set{err: broken}, true, nil).Tools(nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	for name, f := range map[string]func(){
		"toolset": func() { tool.WithConfirmation(nil, true, nil) },
		"tool":    func() { tool.ToolWithConfirmation(nil, true, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a nil %s is taken", name)
				}
			}()
			f()
		}()
	}
}
