package house

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	mdLink   = regexp.MustCompile(`\]\(<?([^)\s>]+)>?[^)]*\)`)
	mdCode   = regexp.MustCompile("`[^`]*`")
	goCited  = regexp.MustCompile(`[A-Za-z0-9_./*-]*[A-Za-z0-9_]\.go\b`)
	testName = regexp.MustCompile(`\b(Test|Fuzz|Benchmark|Example)[A-Z][A-Za-z0-9_]*\b`)
)

var pageRules = []rule{
	{
		name:   "LinksResolve",
		why:    "a relative link of a page leads to a file, and its #fragment to a heading of that page",
		check:  checkLinks,
		broken: map[string]string{"README.md": "[a](missing.md) and\n[b](#no-such)\n"},
		blames: "README.md:1: missing.md",
		fine: map[string]string{
			"README.md":           "# Two words: here\n[a](docs/a.md#top), [b](#two-words-here), [c](https://x.y/z), [d](docs/)\n```\n[e](missing)\n```\n`[f](missing)`\n",
			"docs/a.md":           "# Top\n",
			"tests/testdata/x.md": "[not a page of ours](missing)",
		},
	},
	{
		name:   "CitationsExist",
		why:    "a page that names a file or a test is believed: it names those that exist",
		check:  checkCitations,
		broken: map[string]string{"ARCHITECTURE.md": "see `fold.go`\nand TestNothing\n"},
		blames: "ARCHITECTURE.md:1: fold.go",
		fine: map[string]string{
			"ARCHITECTURE.md":                   "see `fold/fold.go`, nats.go, `TestFoldsOnce/twice` and ADK-GO.md\n",
			"coordinator/internal/fold/fold.go": "package fold\n",
			"worker/a_test.go":                  "package worker\nfunc TestFoldsOnce() {}\n",
		},
	},
}

// Words that look like files of ours and are products.
var products = []string{"nats.go", "orbit.go"}

func checkLinks(r *repo) []string {
	var problems []string
	for _, page := range r.pages() {
		for i, line := range prose(r.texts[page]) {
			for _, m := range mdLink.FindAllStringSubmatch(mdCode.ReplaceAllString(line, ""), -1) {
				target, fragment, _ := strings.Cut(m[1], "#")
				if strings.Contains(target, ":") {
					continue // another site
				}
				file := page
				if target != "" {
					file = path.Join(path.Dir(page), target)
				}
				text, isFile := r.texts[file]
				switch {
				case !isFile && !r.folders[file] && file != ".":
					problems = append(problems, fmt.Sprintf("%s:%d: %s leads nowhere", page, i+1, m[1]))
				case fragment != "" && strings.HasSuffix(file, ".md") && !slices.Contains(headings(text), fragment):
					problems = append(problems, fmt.Sprintf("%s:%d: %s: no such heading", page, i+1, m[1]))
				}
			}
		}
	}
	return problems
}

func checkCitations(r *repo) []string {
	tests := map[string]bool{}
	for _, f := range r.gofiles {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && f.test && fn.Recv == nil {
				tests[fn.Name.Name] = true
			}
		}
	}
	var problems []string
	for _, page := range []string{"ARCHITECTURE.md", "README.md"} {
		for i, line := range strings.Split(r.texts[page], "\n") {
			for _, cited := range goCited.FindAllString(line, -1) {
				if !strings.Contains(cited, "*") && !slices.Contains(products, path.Base(cited)) && !r.hasFile(cited) {
					problems = append(problems, fmt.Sprintf("%s:%d: %s does not exist", page, i+1, cited))
				}
			}
			for _, cited := range testName.FindAllString(line, -1) {
				if !tests[cited] {
					problems = append(problems, fmt.Sprintf("%s:%d: %s does not exist", page, i+1, cited))
				}
			}
		}
	}
	return problems
}

// pages lists the Markdown files, testdata left out.
func (r *repo) pages() []string {
	var pages []string
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		if strings.HasSuffix(name, ".md") && !strings.Contains(name, "testdata/") {
			pages = append(pages, name)
		}
	}
	return pages
}

// hasFile tells whether some file's path ends with the cited one.
func (r *repo) hasFile(cited string) bool {
	cited = strings.TrimLeft(cited, "./")
	for name := range r.texts {
		if name == cited || strings.HasSuffix(name, "/"+cited) {
			return true
		}
	}
	return false
}

// prose is the lines of a page with fenced code blanked.
func prose(text string) []string {
	lines := strings.Split(text, "\n")
	fenced := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence || fenced {
			lines[i] = ""
		}
		if fence {
			fenced = !fenced
		}
	}
	return lines
}

// headings is the fragments of a page, as GitHub makes them.
func headings(text string) []string {
	var all []string
	for _, line := range prose(text) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		var b strings.Builder
		for _, c := range strings.ToLower(strings.TrimSpace(title)) {
			switch {
			case c == ' ' || c == '-':
				b.WriteByte('-')
			case c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c > 127:
				b.WriteRune(c)
			}
		}
		all = append(all, b.String())
	}
	return all
}
