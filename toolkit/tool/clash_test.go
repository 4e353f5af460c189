package tool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// listed is a toolset by another name than inner.
type listed struct {
	name  string
	tools []tool.Tool
	err   error
}

func (l listed) Name() string                                     { return l.name }
func (l listed) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return l.tools, l.err }

// broken panics when it is listed.
type broken struct{ tool.Toolset }

func (broken) Name() string                                     { return "broken" }
func (broken) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { panic("no map") }

func names(tools []tool.Tool) []string {
	var list []string
	for _, t := range tools {
		list = append(list, t.Name())
	}
	return list
}

func TestWhatCannotBeListedTakesNothingElseAlong(t *testing.T) { // H35, H46, H52, AR-CORE-03
	own := plain{"read_file", ""}
	all, faults := tool.Gather(nil, []tool.Tool{own, nil}, []tool.Toolset{
		listed{name: "fs", tools: []tool.Tool{plain{"read_file", ""}, plain{"get/page", ""}, nil, plain{"write", ""}}},
		nil, broken{}, listed{name: "away", err: errAble},
		listed{name: "web", tools: []tool.Tool{plain{"get_page_5trnm4vy", ""}, plain{"put", ""}}},
		tool.Prefix(listed{name: "git", tools: []tool.Tool{plain{"read_file", ""}}}, "git"),
	})
	if got := names(all); !slices.Equal(got, []string{"read_file", "get_page_5trnm4vy", "write", "put", "git_read_file"}) || all[0] != tool.Tool(own) {
		t.Errorf("listed: %v", got)
	}
	texts := make([]string, len(faults))
	for i, err := range faults {
		texts[i] = err.Error()
	}
	if want := []string{
		"Tools[1]: the tool is nil",
		`two tools are named read_file: one is of Tools[0], one of toolset "fs"; give one another name: tool.Prefix for all tools of a toolset, tool.Rename or tool.ToolWithName for one`,
		`toolset "fs": the tool is nil`,
		"Toolsets[1]: the toolset is nil",
		`toolset "broken": it panicked while it was listed: no map`,
		`toolset "away": it was called`,
		`two tools are named get_page_5trnm4vy: one is of toolset "fs" (there "get/page"), one of toolset "web"; give one another name: tool.Prefix for all tools of a toolset, tool.Rename or tool.ToolWithName for one`,
	}; !slices.Equal(texts, want) {
		t.Errorf("left out:\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	clash, ok := errors.AsType[*tool.ClashError](faults[1])
	if !ok || *clash != (tool.ClashError{Name: "read_file", First: "Tools[0]", Second: `toolset "fs"`}) {
		t.Errorf("%+v", clash)
	}
}

func TestATakenNameStaysItsFirstOwners(t *testing.T) {
	var n tool.Names
	if n.Taken("a") || n.Take(plain{"a", ""}, "x") != nil || !n.Taken("a") {
		t.Error("a name that nobody has cannot be taken")
	}
	for _, owner := range []string{"y", "z"} {
		clash, ok := errors.AsType[*tool.ClashError](n.Take(plain{"a", ""}, owner))
		if !ok || clash.First != "x" || clash.Second != owner {
			t.Errorf("%+v", clash)
		}
	}
}
