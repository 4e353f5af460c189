package tooltest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// declaration checks what registry and models are told of the tool.
func declaration(t *testing.T, it *invoke.Tool, mk func() tool.Tool) {
	d := it.Declaration()
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	if strings.TrimSpace(d.Description) == "" {
		t.Error("the description is empty: a model cannot know what the tool is for")
	}
	var schema struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(d.Parameters, &schema); err != nil || schema.Properties == nil {
		t.Errorf("the parameters have no properties, %v: some model providers refuse the request then", err)
	}
	again, err := invoke.New(mk())
	if err != nil {
		t.Fatalf("the tool is refused when it is made again: %v", err)
	}
	if it.Digest() != again.Digest() || it.Digest() != d.Digest() {
		t.Error("the digest changes from one making to the next")
	}
	got := other(t, mk).Declaration()
	if got.Name == d.Name {
		t.Error("the tool keeps its name when it is given another one")
	}
	if got.Name = d.Name; got.Digest() != d.Digest() || got.Attempts != d.Attempts || got.Timeout != d.Timeout || got.MaxActive != d.MaxActive ||
		got.QueueTimeout != d.QueueTimeout || got.ParkTimeout != d.ParkTimeout {
		t.Errorf("under another name it is declared as %+v, want %+v", got, d)
	}
}

// other is the tool under another name.
func other(t *testing.T, mk func() tool.Tool) *invoke.Tool {
	t.Helper()
	made := mk()
	it, err := invoke.New(tool.ToolWithName(made, "other_"+made.Name()[:min(len(made.Name()), 40)]))
	if err != nil {
		t.Fatalf("the tool is refused under another name: %v", err)
	}
	return it
}

// renamed runs a case under another name. What ends otherwise than completed may tell the name.
func renamed(t *testing.T, mk func() tool.Tool, c Case) {
	t.Helper()
	if c.Outcome == "" || c.Outcome == protocol.OutcomeCompleted {
		once(t, other(t, mk), c)
	}
}

// misfits makes arguments that the tool's schema does not take of those of its cases.
func misfits(t *testing.T, it *invoke.Tool, cases []Case) {
	var schema struct {
		Required             []string
		Properties           map[string]json.RawMessage
		AdditionalProperties *bool
	}
	if err := json.Unmarshal(it.Declaration().Parameters, &schema); err != nil {
		return // what the schema says of properties is no list of them
	}
	closed := schema.AdditionalProperties != nil && !*schema.AdditionalProperties
	for _, c := range cases {
		var args map[string]json.RawMessage
		if c.Refused || json.Unmarshal([]byte(c.Args), &args) != nil {
			continue
		}
		with := func(change func(map[string]json.RawMessage)) {
			changed := maps.Clone(args)
			change(changed)
			raw, err := json.Marshal(changed)
			if err != nil {
				t.Fatal(err)
			}
			refused(t, it, Case{Args: string(raw)})
		}
		for _, name := range schema.Required {
			with(func(m map[string]json.RawMessage) { delete(m, name) })
			if otherwise := strings.ToUpper(name); otherwise != name && schema.Properties[otherwise] == nil {
				with(func(m map[string]json.RawMessage) { m[otherwise] = m[name]; delete(m, name) })
			}
		}
		if closed {
			with(func(m map[string]json.RawMessage) { m["a property that nobody knows"] = json.RawMessage("1") })
			for _, name := range slices.Sorted(maps.Keys(args)) {
				if otherwise := strings.ToUpper(name); schema.Properties[otherwise] == nil {
					with(func(m map[string]json.RawMessage) { m[otherwise] = m[name] })
				}
			}
		}
	}
}
