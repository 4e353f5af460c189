package house

import (
	"fmt"
	"regexp"
)

// quoted is a Go block of a page that must be a file of ours, between <!-- example:PATH --> and <!-- /example -->.
var quoted = regexp.MustCompile("(?s)<!-- example:(\\S+) -->\\n```go\\n(.*?)```\\n<!-- /example -->")

var (
	exampleMark = regexp.MustCompile(`<!-- example:`)
	packageLine = regexp.MustCompile(`(?m)^package \w+$`)
	exampleFunc = regexp.MustCompile(`(?m)^func Example(_\w+)?\(\) \{`)
)

var exampleRules = []rule{{
	name:  "QuotedExamplesAreCompiled",
	why:   "a page's example is a file's whole text as godoc shows it, in package main with Example, or Example_x, as main: copy it from there",
	check: checkExamples,
	broken: map[string]string{
		"README.md":              "<!-- example:worker/example_test.go -->\n```go\npackage main\n\nfunc main() { old() }\n```\n<!-- /example -->\n",
		"worker/example_test.go": "package worker_test\n\nfunc Example() {}\n",
	},
	blames: "README.md: the example is not worker/example_test.go",
	fine: map[string]string{
		"README.md":              "a\n<!-- example:worker/example_test.go -->\n```go\npackage main\n\nfunc main() {}\n```\n<!-- /example -->\nb\n",
		"worker/example_test.go": "package worker_test\n\nfunc Example() {}\n",
	},
}}

func checkExamples(r *repo) []string {
	var problems []string
	for _, page := range r.pages() {
		blocks := quoted.FindAllStringSubmatch(r.texts[page], -1)
		if marks := exampleMark.FindAllString(r.texts[page], -1); len(marks) != len(blocks) {
			problems = append(problems, fmt.Sprintf("%s: %d marks of examples, %d of them with a Go block and an end", page, len(marks), len(blocks)))
		}
		for _, b := range blocks {
			if asProgram(r.texts[b[1]]) != b[2] {
				problems = append(problems, fmt.Sprintf("%s: the example is not %s", page, b[1]))
			}
		}
	}
	return problems
}

func asProgram(text string) string {
	if at := packageLine.FindStringIndex(text); at != nil {
		text = text[:at[0]] + "package main" + text[at[1]:]
	}
	return exampleFunc.ReplaceAllLiteralString(text, "func main() {")
}
