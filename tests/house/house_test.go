// Package house checks the rules of the repository that no compiler knows: who may import whom, what the root holds, how
// things are documented and named, and that the pages point at things that exist. It reads the tree as text and syntax,
// so it needs neither a build nor a network, and it holds for files of every platform and build tag.
//
// Each rule carries an input that breaks it and one that only looks like it; TestRulesCanFail runs both.
package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// rule is one habit of the house.
type rule struct {
	name  string
	why   string                 // printed with every failure
	check func(r *repo) []string // what is wrong, one line each, beginning with the place
	warn  bool                   // a reminder: logged, never a failure
	// The self-test: broken must yield a line that contains blames, fine must yield nothing. Go files are given with
	// their package clause, and a path that ends in "/" is an empty folder.
	broken map[string]string
	blames string
	fine   map[string]string
}

var rules = slices.Concat(importRules, layoutRules, docRules, wordRules, pageRules, exampleRules, abilityRules)

func TestHouse(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	r, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.gofiles) < 20 {
		t.Fatalf("found only %d Go files below %s: the rules would hold for nothing", len(r.gofiles), root)
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			report := t.Errorf
			if rule.warn {
				report = t.Logf
			}
			for _, problem := range rule.check(r) {
				report("%s\n\trule: %s", problem, rule.why)
			}
		})
	}
}

func TestRulesCanFail(t *testing.T) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			problems := rule.check(doctored(t, rule.broken))
			if !strings.Contains(strings.Join(problems, "\n"), rule.blames) || len(problems) == 0 {
				t.Errorf("the broken tree should be blamed for %q, got %q", rule.blames, problems)
			}
			if problems := rule.check(doctored(t, rule.fine)); len(problems) != 0 {
				t.Errorf("the fine tree is blamed: %q", problems)
			}
		})
	}
}

func doctored(t *testing.T, files map[string]string) *repo {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		if folder, ok := strings.CutSuffix(name, "/"); ok {
			fsys[folder] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			continue
		}
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
