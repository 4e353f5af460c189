package tool_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestPrefixedToolsRunUnderTheirOwnNames(t *testing.T) { // H45, H46, h16
	data, err := os.ReadFile(filepath.Join("testdata", "names.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Server, Tool string }
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	legal := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	list := func() []tool.Tool {
		var sets []tool.Toolset
		for _, server := range []string{"fs", "git", "web"} {
			var own []tool.Tool
			for _, c := range cases {
				if c.Server == server {
					own = append(own, plain{c.Tool, server})
				}
			}
			sets = append(sets, tool.Prefix(listed{name: server, tools: own}, server))
		}
		all, faults := tool.Gather(nil, nil, sets)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		return all
	}
	all := list()
	if len(all) != len(cases) || !slices.Equal(names(all), names(list())) {
		t.Fatalf("%v is not the same list each time", names(all))
	}
	seen := map[string]bool{}
	for i, got := range all {
		if !legal.MatchString(got.Name()) || protocol.CheckName(got.Name()) != nil || seen[got.Name()] {
			t.Errorf("%q is not legal, or is there twice", got.Name())
		}
		seen[got.Name()] = true
		if !strings.HasPrefix(got.Name(), cases[i].Server+"_") || tool.Original(got) != cases[i].Tool {
			t.Errorf("%q of %q is named %s, the original %q", cases[i].Tool, cases[i].Server, got.Name(), tool.Original(got))
		}
		r, _ := tool.AsRunnable(got)
		if out, err := r.Run(nil, nil); err != nil || out["ran"] != cases[i].Tool || r.Declaration().Name != got.Name() || !strings.HasPrefix(got.Description(), cases[i].Server) {
			t.Errorf("%s ran %v of %q, %v", got.Name(), out, got.Description(), err)
		}
	}
	if seen["read_file"] {
		t.Error("the bare name is listed")
	}
}

func TestAFilterSeesTheNamesOfTheLayerBelow(t *testing.T) { // H46, H76
	ts := listed{name: "fs", tools: []tool.Tool{plain{"read", ""}, plain{"write", ""}}}
	for want, got := range map[string]tool.Toolset{
		"fs_read":  tool.Prefix(tool.FilterToolset(ts, tool.AllowedToolsPredicate([]string{"read"})), "fs"),
		"fs_write": tool.FilterToolset(tool.Prefix(ts, "fs"), tool.AllowedToolsPredicate([]string{"write", "fs_write"})),
		"drop":     tool.FilterToolset(tool.Rename(ts, map[string]string{"write": "drop", "gone": "x"}), tool.StringPredicate([]string{"drop"})),
	} {
		tools, err := got.Tools(nil)
		if err != nil || !slices.Equal(names(tools), []string{want}) {
			t.Errorf("%v, %v; want %s", names(tools), err, want)
		}
	}
	names := map[string]string{"read": "fetch"}
	renamed := tool.Rename(ts, names)
	names["read"] = "other" // the set holds its own copy
	if tools, err := renamed.Tools(nil); err != nil || tools[0].Name() != "fetch" || tools[1].Name() != "write" {
		t.Errorf("%v, %v", tools, err)
	}
}

func TestAConfirmationIsAskedByTheNameOfItsLayer(t *testing.T) { // H46
	for want, around := range map[string]func(tool.Toolset, tool.ConfirmationProvider) tool.Toolset{
		"git_read_file": func(ts tool.Toolset, p tool.ConfirmationProvider) tool.Toolset {
			return tool.WithConfirmation(tool.Prefix(ts, "git"), false, p)
		},
		"read_file": func(ts tool.Toolset, p tool.ConfirmationProvider) tool.Toolset {
			return tool.Prefix(tool.WithConfirmation(ts, false, p), "git")
		},
	} {
		asked := ""
		ts := around(listed{name: "git", tools: []tool.Tool{plain{"read_file", ""}}}, func(name string, _ any) bool { asked = name; return true })
		tools, err := ts.Tools(nil)
		if err != nil || len(tools) != 1 || tools[0].Name() != "git_read_file" {
			t.Fatalf("%v, %v", tools, err)
		}
		a, ok := tool.As[tool.Asker](tools[0])
		if !ok {
			t.Fatalf("%s: nobody is asked", want)
		}
		if yes, err := a.AsksConfirmation(json.RawMessage(`{}`)); !yes || err != nil || asked != want {
			t.Errorf("asked about %s, want %s: %v, %v", asked, want, yes, err)
		}
	}
}

// pending is long-running and says so below its description.
type pending struct{ plain }

func (pending) IsLongRunning() bool { return true }

func TestADescriptionIsReplacedButNotItsNotes(t *testing.T) {
	long := pending{plain{"ship", "Ships.\n\n" + tool.LongRunningNote}}
	r, _ := tool.AsRunnable(tool.ToolWithDescription(long, "Sends a parcel."))
	if got := r.Declaration().Description; got != "Sends a parcel.\n\n"+tool.LongRunningNote || !r.IsLongRunning() {
		t.Errorf("%q", got)
	}
	twice := tool.ToolWithName(tool.ToolWithDescription(tool.Aliased(plain{"a b", "Was."}), "Is."), "c")
	if twice.Name() != "c" || twice.Description() != "Is." || tool.Original(twice) != "a b" {
		t.Errorf("%s: %q", twice.Name(), twice.Description())
	}
	again := tool.ToolWithName(tool.Aliased(plain{"a b", "Was."}), "c d")
	if want := "Was.\n\nIts own name is \"a b\"."; again.Description() != want {
		t.Errorf("%q, want %q", again.Description(), want)
	}
}

func TestSettingsAreChangedByName(t *testing.T) {
	ts := tool.WithSettings(listed{tools: []tool.Tool{plain{"read", ""}, runs{tool.Settings{Attempts: 7}}}}, func(name string, s *tool.Settings) {
		if name == "read" {
			s.Effect = tool.Read
		}
		s.MaxActive = 3
	})
	tools, err := ts.Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []tool.Settings{{Effect: tool.Read, MaxActive: 3}, {Attempts: 7, MaxActive: 3}} {
		c, ok := tool.As[tool.Configured](tools[i])
		if !ok || c.Settings() != want {
			t.Errorf("%s: %+v", tools[i].Name(), c)
		}
	}
}
