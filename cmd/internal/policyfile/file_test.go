package policyfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAPolicyIsReadWhole(t *testing.T) {
	p, err := Read(write(t, `
rules:
  - name: large
    when: tool == "pay" && args.amount > 100
    hint: That is a lot.
    need: 2
    not_requester: true
  - name: all
    when: true
    enforce_denial: true
    tighten: true
  - name: lines
    when: |
      "vip" in args.tags ||
        user == "ann"
`))
	if err != nil {
		t.Fatal(err)
	}
	got := p.Judge(policy.Call{Tool: "pay", Args: json.RawMessage(`{"amount":101,"tags":[]}`)})
	want := policy.Ruling{Rule: "large", Hint: "That is a lot.", Need: 2, NotRequester: true, EnforceDenial: true}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := p.Judge(policy.Call{Tool: "look", User: "ann", Args: json.RawMessage(`{"tags":[]}`)}); got.Rule != "lines" {
		t.Errorf("%+v, want the rule lines", got)
	}
}

func TestNoFileIsNoPolicy(t *testing.T) {
	if p, err := Read(""); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}

func TestFaultsOfAPolicyNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "1:1: the file"},
		{"rules: []", `1:8: rules is empty`},
		{"rules:\n  - {name: a, when: 'true', needs: 2}", `2:29: unknown key "needs"; did you mean "need"?`},
		{"rules:\n  - {name: a}", `a rule needs the key "when"`},
		{"rules:\n  - {name: a, when: 'true', need: 0}", `need is the number of approvers`},
		{"rules:\n  - {name: a, when: 'true', need: two}", `a whole number from 0 on is wanted here`},
		{"rules:\n  - {name: a, when: 'true', not_requester: 'yes'}", `true or false is wanted here`},
		{"rules:\n  - name: a\n    when: tol == 'x'", `policy.yaml:2:11: policy rule "a": line 1, column 1 of the expression: undeclared reference to 'tol'`},
	} {
		_, err := Read(write(t, c.text))
		if protocol.CodeOf(err) != protocol.CodeUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.yaml")); protocol.CodeOf(err) != protocol.CodeUsage {
		t.Errorf("no such file: %v", err)
	}
}
