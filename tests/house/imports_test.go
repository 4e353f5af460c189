package house

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// imports is who may import what of ours. The first row whose pattern matches a package decides. A package may always
// import the packages below it. Test files may also import the protocol, the kits below tests and the toolkit's own kits
// (tooltest, modeltest).
var imports = []struct {
	pkg  string
	may  []string
	only string // "std": nothing of others either
}{
	{pkg: "protocol", only: "std"},
	{pkg: "protocol/natswire/...", may: []string{"protocol", "protocol/natswire/..."}},
	{pkg: "protocol/crew", only: "std"},
	{pkg: "protocol/fault", only: "std"},
	{pkg: "protocol/telemetry/...", may: []string{"protocol"}},
	{pkg: "protocol/fault/...", only: "std"},

	// The toolkit is a ladder: each row may import the rows above it.
	{pkg: "toolkit/tool/toolconfirmation", may: wire},
	{pkg: "toolkit/model/...", may: join(wire, "toolkit/tool/toolconfirmation", "toolkit/model/...")},
	{pkg: "toolkit/session", may: join(wire, "toolkit/tool/toolconfirmation", "toolkit/model")},
	{pkg: "toolkit/memory", may: join(wire, "toolkit/model", "toolkit/session")},
	{pkg: "toolkit/artifact", may: join(wire, "toolkit/model", "toolkit/session")},
	{pkg: "toolkit/agent", may: join(wire, values...)},
	{pkg: "toolkit/tool", may: join(wire, append(values, "toolkit/agent")...)},
	{pkg: "toolkit/plugin", may: join(wire, append(values, "toolkit/agent", "toolkit/agent/llmagent", "toolkit/tool")...)},
	{pkg: "toolkit/tool/invoke", may: join(wire, append(values, "toolkit/agent", "toolkit/tool")...)},
	{pkg: "toolkit/agent/agentfile/...", may: []string{"protocol", "protocol/telemetry/...", "toolkit/..."}},
	{pkg: "toolkit/agent/...", may: join(wire, append(values, "toolkit/agent/...", "toolkit/tool")...)},
	{pkg: "toolkit/tool/agenttool", may: join(wire, append(values, "toolkit/agent/...", "toolkit/tool")...)},
	{pkg: "toolkit/tool/skilltoolset", may: join(wire, append(values, "toolkit/agent", "toolkit/tool", "toolkit/tool/exectool", "toolkit/tool/functiontool", "toolkit/tool/invoke")...)},
	{pkg: "toolkit/tool/internal/...", only: "std"},
	{pkg: "toolkit/tool/...", may: join(wire, append(values, "toolkit/agent", "toolkit/tool", "toolkit/tool/invoke", "toolkit/tool/functiontool", "toolkit/tool/internal/...")...)},
	{pkg: "toolkit/...", may: []string{"protocol", "protocol/telemetry/...", "toolkit/..."}},

	{pkg: "worker/...", may: []string{"protocol/...", "toolkit/...", "worker/..."}},
	{pkg: "coordinator/...", may: []string{"protocol/...", "toolkit/...", "coordinator/..."}},
	{pkg: "cmd/...", may: []string{"protocol/...", "toolkit/...", "worker/...", "coordinator/...", "cmd/..."}},
	{pkg: "tests/natstest/...", may: []string{"protocol", "protocol/natswire/..."}},
	{pkg: "tests/...", may: []string{"protocol/...", "toolkit/...", "worker/...", "coordinator/...", "cmd/...", "tests/..."}},
}

var (
	wire   = []string{"protocol", "protocol/telemetry/..."}
	values = []string{"toolkit/tool/toolconfirmation", "toolkit/model", "toolkit/session", "toolkit/memory", "toolkit/artifact"}
)

func join(a []string, b ...string) []string { return slices.Concat(a, b) }

// guests is where packages of others may be imported, outside test files: whoever is not named here may not see them.
var guests = []struct {
	prefix string
	in     []string
	why    string
}{
	{"github.com/nats-io/", []string{"protocol/natswire/...", "cmd/...", "tests/..."}, "only natswire talks to the broker; the others use its Bus"},
	{"github.com/synadia-io/", []string{"protocol/natswire/...", "cmd/...", "tests/..."}, "only natswire talks to the broker; the others use its Bus"},
	{"github.com/spf13/", []string{"cmd/..."}, "flags belong to the commands"},
}

var importRules = []rule{
	{
		name:   "ImportTable",
		why:    "the import table at the top of tests/house/imports_test.go; the consumer declares the interface it needs instead",
		check:  checkImportTable,
		broken: map[string]string{"worker/pull.go": "package worker\nimport _ \"" + module + "/coordinator\"\n"},
		blames: "worker/pull.go:2: worker imports coordinator",
		fine: map[string]string{
			"worker/pull.go":               "package worker\nimport _ \"" + module + "/protocol/natswire\"\n",
			"coordinator/client/a.go":      "package client\nimport _ \"" + module + "/coordinator/internal/view\"\n",
			"protocol/telemetry/a_test.go": "package telemetry_test\nimport _ \"" + module + "/protocol/natswire\"\n",
			"worker/pull_test.go":          "package worker\nimport _ \"" + module + "/tests/natstest\"\n",
		},
	},
	{
		name:   "EveryPackageHasARow",
		why:    "a package without a row in the import table is checked by nobody: add one, or put the package where a row covers it",
		check:  checkRows,
		broken: map[string]string{"pkg/thing/thing.go": "package thing\n"},
		blames: "pkg/thing",
		fine:   map[string]string{"coordinator/internal/fold/fold.go": "package fold\n"},
	},
	{
		name:   "ProtocolIsStandardLibraryOnly",
		why:    "whoever speaks the protocol must be able to take it without anything else",
		check:  checkStandardOnly,
		broken: map[string]string{"protocol/id.go": "package protocol\nimport _ \"github.com/google/uuid\"\n"},
		blames: "protocol/id.go:2: imports github.com/google/uuid",
		fine: map[string]string{
			"protocol/id.go":         "package protocol\nimport _ \"encoding/json\"\n",
			"protocol/natswire/a.go": "package natswire\nimport _ \"github.com/nats-io/nats.go\"\n",
		},
	},
	{
		name:   "NothingImportsTests",
		why:    "no test code enters a binary: outside _test.go and tests/ nothing imports tests/",
		check:  checkNoTestCode,
		broken: map[string]string{"cmd/toolfabric/main.go": "package main\nimport _ \"" + module + "/tests/natstest\"\n"},
		blames: "cmd/toolfabric/main.go:2",
		fine:   map[string]string{"cmd/toolfabric/main_test.go": "package main\nimport _ \"" + module + "/tests/natstest\"\n"},
	},
	{
		name:   "Guests",
		why:    "the list of guests in tests/house/imports_test.go",
		check:  checkGuests,
		broken: map[string]string{"worker/pull.go": "package worker\nimport _ \"github.com/nats-io/nats.go\"\n"},
		blames: "worker/pull.go:2: imports github.com/nats-io/nats.go",
		fine:   map[string]string{"worker/pull_test.go": "package worker\nimport _ \"github.com/nats-io/nats.go\"\n"},
	},
}

func checkImportTable(r *repo) []string {
	return r.eachImport(func(f *gofile, target string) string {
		pkg, ok := ours(target)
		if !ok || matches(f.dir+"/...", pkg) || f.test && (matches("tests/...", pkg) || matches("protocol/...", pkg) || strings.HasPrefix(pkg, "toolkit/") && strings.HasSuffix(pkg, "test")) {
			return ""
		}
		for _, row := range imports {
			if !matches(row.pkg, f.dir) {
				continue
			}
			if slices.ContainsFunc(row.may, func(p string) bool { return matches(p, pkg) }) {
				return ""
			}
			return fmt.Sprintf("%s imports %s; it may import %s", f.dir, pkg, strings.Join(row.may, ", "))
		}
		return ""
	})
}

func checkRows(r *repo) []string {
	var problems []string
	for _, files := range r.packages() {
		dir := files[0].dir
		covered := false
		for _, row := range imports {
			covered = covered || matches(row.pkg, dir)
		}
		if !covered {
			problems = append(problems, dir+": no row of the import table covers this package")
		}
	}
	return problems
}

func checkStandardOnly(r *repo) []string {
	return r.eachImport(func(f *gofile, target string) string {
		for _, row := range imports {
			if row.only == "std" && matches(row.pkg, f.dir) && !f.test && strings.Contains(strings.Split(target, "/")[0], ".") {
				return "imports " + target
			}
		}
		return ""
	})
}

func checkNoTestCode(r *repo) []string {
	return r.eachImport(func(f *gofile, target string) string {
		if pkg, ok := ours(target); ok && matches("tests/...", pkg) && !f.test && !matches("tests/...", f.dir) {
			return "imports " + pkg
		}
		return ""
	})
}

func checkGuests(r *repo) []string {
	return r.eachImport(func(f *gofile, target string) string {
		for _, g := range guests {
			if strings.HasPrefix(target, g.prefix) && !f.test && !slices.ContainsFunc(g.in, func(p string) bool { return matches(p, f.dir) }) {
				return fmt.Sprintf("imports %s: %s", target, g.why)
			}
		}
		return ""
	})
}

// eachImport asks about every import of every file and puts the place before what is wrong.
func (r *repo) eachImport(ask func(f *gofile, target string) string) []string {
	var problems []string
	for _, f := range r.gofiles {
		all := f.imports()
		for _, target := range slices.Sorted(maps.Keys(all)) {
			if wrong := ask(f, target); wrong != "" {
				problems = append(problems, r.at(all[target])+": "+wrong)
			}
		}
	}
	return problems
}
