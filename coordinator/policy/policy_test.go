package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/protocol"
)

func TestRulesOverACall(t *testing.T) {
	call := Call{Tool: "refund", Agent: "helper", User: "ann", App: "shop", Effect: protocol.EffectAtMostOnce,
		Args: json.RawMessage(`{"amount":100.5,"big":18446744073709551615,"whole":9007199254740993,"to":{"iban":"DE1"},"tags":["a","b"],"none":null}`)}
	for _, c := range []struct {
		when  string
		holds bool
	}{
		{`true`, true},
		{`tool == "refund" && agent == "helper" && user == "ann" && app == "shop"`, true},
		{`tool == "other"`, false},
		{`effect == "at_most_once"`, true},
		{`args.amount > 100`, true},
		{`args.amount > 100.5`, false},
		{`args.big > 0`, true},
		{`args.whole == 9007199254740993`, true},
		{`args.whole == 9007199254740992`, false},
		{`args.to.iban.startsWith("DE")`, true},
		{`"b" in args.tags && size(args.tags) == 2`, true},
		{`args.tags.exists(t, t == "c")`, false},
		{`has(args.missing) && args.missing > 1`, false},
		{`args.none == null`, true},
		{`tool in ["refund", "pay"]`, true},
		{`tool.matches("^re.*d$")`, true},
	} {
		p, err := Compile([]Rule{{Name: "r", When: c.when}})
		if err != nil {
			t.Errorf("%s: %v", c.when, err)
			continue
		}
		if got := p.Judge(call); (got.Rule != "") != c.holds || strings.Contains(got.Hint, "could not") {
			t.Errorf("%s: %+v, want %v", c.when, got, c.holds)
		}
	}
}

func TestRulesAddUp(t *testing.T) {
	p, err := Compile([]Rule{
		{Name: "never", When: `false`, Need: 9, Hint: "no"},
		{Name: "strict", When: `tool == "pay"`, Need: 3, Tighten: true},
		{Name: "first", When: `tool == "pay"`, Hint: "Money leaves."},
		{Name: "second", When: `args.n > 1`, Need: 2, NotRequester: true},
		{Name: "denial", When: `true`, EnforceDenial: true, Tighten: true, Hint: "No means no."},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool, args string
		want       Ruling
	}{
		{"pay", `{"n":2}`, Ruling{Rule: "first", Need: 3, NotRequester: true, EnforceDenial: true,
			Hint: "Money leaves.\nThe rule second wants a person's word on each such call of pay.\nNo means no."}},
		{"look", `{"n":1}`, Ruling{EnforceDenial: true, Hint: "No means no."}},
	} {
		if diff := cmp.Diff(c.want, p.Judge(Call{Tool: c.tool, Args: json.RawMessage(c.args)})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.tool, diff)
		}
	}
	var none *Policy
	if got := none.Judge(Call{}); got != (Ruling{}) {
		t.Errorf("no rules: %+v", got)
	}
}

func TestARuleThatFailsAsks(t *testing.T) {
	long, _ := json.Marshal(map[string]any{"list": strings.Split(strings.Repeat("x,", 2000), ",")})
	for _, c := range []struct {
		name, when, args, why string
	}{
		{"a missing argument", `args.amount > 100`, `{}`, "no such key: amount"},
		{"an argument of another type", `args.amount > 100`, `{"amount":"many"}`, "no such overload"},
		{"division by zero", `1 / args.n > 0`, `{"n":0}`, "division by zero"},
		{"a number that is none of CEL's", `tool == "x"`, `{"n":1e999}`, "the number 1e999 is out of range"},
		{"no object", `tool == "x"`, `[]`, "the arguments are no object"},
		{"no JSON", `tool == "x"`, `{`, "the arguments cannot be read"},
		{"cost", `args.list.exists(a, args.list.exists(b, a != b && a == "y"))`, string(long), "cost limit exceeded"},
	} {
		p, err := Compile([]Rule{{Name: "guard", When: c.when, Hint: "Look at it."}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := p.Judge(Call{Tool: "pay", Args: json.RawMessage(c.args)})
		if got.Rule != "guard" || !strings.HasPrefix(got.Hint, "Look at it. (The rule guard could not be evaluated, so it counts: ") || !strings.Contains(got.Hint, c.why) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.why)
		}
	}
}

func TestFaultsNameTheRuleAndThePlace(t *testing.T) {
	_, err := Compile([]Rule{
		{Name: "typo", When: "tool == 'a' &&\n  agnt == 'b'", At: "policy.yaml:3:5"},
		{Name: "cut", When: "tool =="},
		{Name: "text", When: "tool"},
		{Name: "dyn", When: "args.yes"},
		{Name: "types", When: "tool > 1"},
		{Name: "", When: "true"},
		{Name: "flag", When: "true"},
		{Name: "empty", When: " "},
		{Name: "need", When: "true", Need: 17},
		{Name: "hint", When: "true", Hint: "a\u202eb"},
		{Name: "idle", When: "true", Tighten: true, Need: 1},
		{Name: "fine", When: "true"},
		{Name: "fine", When: "true"},
		{Name: "long", When: `tool == "` + strings.Repeat("x", MaxExpression) + `"`},
	})
	if protocol.CodeOf(err) != protocol.CodeUsage {
		t.Fatal(err)
	}
	want := []string{
		`policy.yaml:3:5: policy rule "typo": line 2, column 3 of the expression: undeclared reference to 'agnt'`,
		`policy rule "cut": line 1, column 8 of the expression: Syntax error`,
		`policy rule "text": the expression has the type string and not bool`,
		`policy rule "dyn": the expression has the type dyn and not bool`,
		`policy rule "types": line 1, column 6 of the expression: found no matching overload`,
		`policy rule 6: its name is not one`,
		`policy rule "flag": the name flag is taken`,
		`policy rule "empty": it has no expression`,
		`policy rule "need": need 17`,
		`policy rule "hint": the hint holds U+202E`,
		`policy rule "idle": it tightens nothing`,
		`policy rule "fine": another rule has that name`,
		`policy rule "long": the expression has 4106 code points`,
	}
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %s", want[i])
		case i >= len(want):
			t.Errorf("more: %s", got[i])
		case !strings.Contains(got[i], want[i]):
			t.Errorf("fault %d: %s\nwant %s", i, got[i], want[i])
		}
	}
}

func TestTooManyRules(t *testing.T) {
	if _, err := Compile(make([]Rule, MaxRules+1)); protocol.CodeOf(err) != protocol.CodeUsage || !strings.Contains(err.Error(), "257 policy rules") {
		t.Error(err)
	}
	if p, err := Compile(nil); p != nil || err != nil {
		t.Errorf("no rules: %v, %v", p, err)
	}
}

func BenchmarkJudgeOfTenRules(b *testing.B) {
	var rules []Rule
	for _, name := range strings.Split("abcdefghij", "") {
		rules = append(rules, Rule{Name: name, When: `tool == "pay" && has(args.amount) && args.amount > 100`})
	}
	p, err := Compile(rules)
	if err != nil {
		b.Fatal(err)
	}
	call := Call{Tool: "pay", Args: json.RawMessage(`{"amount":1,"to":"x"}`)}
	b.ReportAllocs()
	for b.Loop() {
		p.Judge(call)
	}
}
