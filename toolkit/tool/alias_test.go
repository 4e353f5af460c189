package tool_test

import (
	"strings"
	"testing"
	"testing/quick"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Aliases are in policies and logs: they never change.
func TestAliasesAreWhatTheyWere(t *testing.T) {
	for name, want := range map[string]string{
		"read_file":                             "read_file",
		"":                                      "",
		"get/page":                              "get_page_5trnm4vy",
		"get.page":                              "get_page_ptshyisj",
		"a.b:c":                                 "a_b_c_wkrf64hv",
		"3d view":                               "_3d_view_kjrm32yc",
		"-x":                                    "_-x_uqqjmjbg",
		"查詢":                                    "tool_4yssgbj3",
		"größe":                                 "gr_e_2nj2ezy3",
		"/":                                     "tool_rjpnvmuc",
		"a\x00\xff":                             "a_fuufagtg",
		strings.Repeat("n", 63):                 strings.Repeat("n", 63),
		strings.Repeat("n", 64):                 strings.Repeat("n", 54) + "_zydiugk2",
		strings.Repeat("n", 70):                 strings.Repeat("n", 54) + "_qudj3x2b",
		strings.Repeat("/n", 70):                strings.Repeat("n_", 27)[:53] + "_7x5fvch2",
		"get_page_5trnm4vy":                     "get_page_5trnm4vy",
		strings.Repeat("n", 53) + "__________z": strings.Repeat("n", 53) + "_as2iuyfb",
	} {
		if got := tool.Alias(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestAnAliasIsLegalAndItsOwnAlias(t *testing.T) { // H45
	legal := func(name string) bool {
		got := tool.Alias(name)
		return name == "" || protocol.CheckName(got) == nil && tool.Alias(got) == got
	}
	if err := quick.Check(legal, nil); err != nil {
		t.Error(err)
	}
}

// plain runs under whatever name it is given.
type plain struct{ name, text string }

func (p plain) Name() string        { return p.name }
func (p plain) Description() string { return p.text }
func (plain) IsLongRunning() bool   { return false }
func (p plain) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: p.name, Description: p.text}
}
func (p plain) Run(tool.Context, any) (map[string]any, error) {
	return map[string]any{"ran": p.name}, nil
}

func TestAnAliasedToolRunsAsItselfAndSaysItsName(t *testing.T) {
	got := tool.Aliased(plain{"get/page", "Gets a page."})
	fd := got.(tool.Runnable).Declaration()
	const text = "Gets a page.\n\nIts own name is \"get/page\"."
	if got.Name() != "get_page_5trnm4vy" || fd.Name != got.Name() || fd.Description != text || got.Description() != text || tool.Original(got) != "get/page" {
		t.Errorf("%s, %q, %+v", got.Name(), got.Description(), fd)
	}
	if out, err := got.(tool.Runnable).Run(nil, nil); err != nil || out["ran"] != "get/page" {
		t.Errorf("%v, %v", out, err)
	}
	legal := plain{"page", ""}
	if got := tool.Aliased(legal); got != tool.Tool(legal) {
		t.Errorf("a tool with a legal name became a %T", got)
	}
	for name, c := range map[string]struct {
		tool tool.Tool
		want string
	}{
		"no description":           {plain{"a b", ""}, `Its own name is "a b".`},
		"a name that hides itself": {plain{"a\u202eb", ""}, `Its own name is "a\u202eb".`},
		"too long together":        {plain{"a b", strings.Repeat("x", protocol.MaxDescription-3)}, strings.Repeat("x", protocol.MaxDescription-3)},
	} {
		got := tool.Aliased(c.tool).Description()
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
		if _, hidden := protocol.HiddenRune(got); hidden {
			t.Errorf("%s: the description hides text", name)
		}
	}
}
