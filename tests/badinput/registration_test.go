package badinput

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// registrations are beats of a worker that mean no good. Each is for the tool t, and shows in the coordinator's log.
var registrations = []struct {
	name    string
	data    string         // as it is
	schema  string         // or a declaration with these parameters
	other   map[string]any // or with these values
	subject string         // tool token; empty is the declared name, or t
}{
	{name: "not JSON", data: "t"},
	{name: "a version of tomorrow", data: `{"v":2}`},
	{name: "a key twice", data: `{"v":1,"worker":"w","worker":"x"}`},
	{name: "a lone surrogate in a key", data: `{"v":1,"declaration":{"parameters":{"\udc00":1}}}`},
	{name: "a worker that is no id", data: `{"v":1,"worker":"a.b","declaration":{"v":1,"name":"t","parameters":{}}}`},
	{name: "a worker that is somebody else", data: `{"v":1,"worker":"other","declaration":{"v":1,"name":"t","parameters":{}}}`},
	{name: "a name that is none", other: map[string]any{"name": "a b"}, subject: "t"},
	{name: "a tool that is not the subject's", other: map[string]any{"name": "add"}, subject: "t"},
	{name: "a schema that is text", schema: `"object"`},
	{name: "a schema of an array", schema: `{"type":"array"}`},
	{name: "a type that does not exist", schema: `{"type":"object","properties":{"n":{"type":"whole"}}}`},
	{name: "a key twice in the schema", schema: `{"type":"object","type":"object"}`},
	{name: "a reference to elsewhere", schema: `{"type":"object","properties":{"n":{"$ref":"https://evil.test/schema.json"}}}`},
	{name: "a reference to a file", schema: `{"type":"object","properties":{"n":{"$ref":"file:///etc/passwd"}}}`},
	{name: "a reference to nothing", schema: `{"type":"object","properties":{"n":{"$ref":"#/$defs/none"}}}`},
	{name: "a draft that does not exist", schema: `{"$schema":"https://json-schema.org/draft/2099-01/schema","type":"object"}`},
	{name: "a pattern that repeats too often", schema: `{"type":"object","properties":{"n":{"type":"string","pattern":"((a{100}){100}){100}"}}}`},
	{name: "a pattern that looks back", schema: `{"type":"object","properties":{"n":{"type":"string","pattern":"(a+)\\1"}}}`},
	{name: "a schema nested too deep", schema: `{"type":"object","properties":` + strings.Repeat(`{"a":`, 70) + `{}` + strings.Repeat(`}`, 70) + `}`},
	{name: "a schema of 70 KiB", schema: `{"type":"object","description":"` + strings.Repeat("x", 70<<10) + `"}`},
	{name: "a description of 5 KiB", other: map[string]any{"description": strings.Repeat("x", 5<<10)}},
	{name: "a description that clears the screen", other: map[string]any{"description": "Adds.\x1b[2J"}},
	{name: "a description that turns around", other: map[string]any{"description": "Deletes \u202eeht"}},
	{name: "a description with tags nobody sees", other: map[string]any{"description": "Adds.\U000e0041\U000e0042"}},
	{name: "a property's description that turns around", schema: `{"type":"object","properties":{"n":{"description":"\u202eevil"}}}`},
	{name: "an unknown effect", other: map[string]any{"effect": "harmless"}},
	{name: "a timeout below zero", other: map[string]any{"timeout_ms": -1}},
}

func TestBadRegistrationsAreRefusedAndSaid(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	subjectOf := func(i int) string { return f.names.RegistrationSubject("t", fmt.Sprintf("w-%d", i)) }
	for i, row := range registrations {
		data := []byte(row.data)
		if row.data == "" {
			data = beat(t, fmt.Sprintf("w-%d", i), row.schema, row.other)
		}
		f.store(subjectOf(i), data)
	}
	var b strings.Builder
	for i, row := range registrations { // a beat that cannot be read wakes nobody: the next look at all of them tells
		subject, line := subjectOf(i), ""
		f.eventually("word about "+row.name, func() bool { line = f.said.with("refused", "subject="+subject+" "); return line != "" })
		fmt.Fprintf(&b, "# %s\n%s\n", row.name, line)
		f.nothingLost()
	}
	if _, err := f.client.Tool(t.Context(), "t"); protocol.CodeOf(err) != protocol.CodeUnknownTool {
		t.Errorf("t is offered: %v", err)
	}
	d, err := f.client.Tool(t.Context(), "add")
	if err != nil || d.Worker != "w-add" {
		t.Errorf("add is declared by %q, %v", d.Worker, err)
	}
	golden(t, "registration", b.String())
}

func beat(t *testing.T, worker, schema string, other map[string]any) []byte {
	t.Helper()
	if schema == "" {
		schema = `{"type":"object"}`
	}
	d := map[string]any{"v": 1, "name": "t", "description": "T.", "parameters": json.RawMessage("null"), "effect": "read"}
	maps.Copy(d, other)
	data, err := json.Marshal(map[string]any{"v": 1, "worker": worker, "declaration": d, "slots": 1})
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(data), `"parameters":null`, `"parameters":`+schema, 1))
}

// timers are what fires without ever having been a guard. Only coordinators may write there.
var timers = []struct{ name, data string }{
	{"not JSON", "due"},
	{"nothing at all", ""},
	{"a version of tomorrow", `{"v":2,"coordinator":"c","adoption":"a"}`},
	{"a number for a name", `{"v":1,"coordinator":1}`},
	{"an array", `[]`},
}

func TestBadTimersAreTold(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var b strings.Builder
	for i, row := range timers {
		subject := f.names.DueSubject("house", fmt.Sprintf("due-%d", i))
		f.store(subject, []byte(row.data))
		fmt.Fprintf(&b, "# %s\n%s\n", row.name, f.letter("timer", subject, []byte(row.data)))
		f.nothingLost()
	}
	// A guard of an adoption that a session left behind long ago is acked without waking anybody.
	r, err := f.client.Send(t.Context(), "house", "", client.Text("add"))
	if err != nil {
		t.Fatal(err)
	}
	f.outcome(r.App, r.Session, r.InputID)
	before, err := f.client.Log(t.Context(), r.App, r.Session, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.store(f.names.DueSubject("house", r.Session), []byte(`{"v":1,"coordinator":"gone","adoption":"forged","expected":0}`))
	f.eventually("empty TIMERS", func() bool {
		left, err := f.conn.Read(t.Context(), f.names.Timers(), f.names.DueFilter("house"), 1, 10)
		return err == nil && len(left) == 0
	})
	if after, err := f.client.Log(t.Context(), r.App, r.Session, 0); err != nil || len(after) != len(before) {
		t.Errorf("the forged guard made the log %d events long from %d, %v", len(after), len(before), err)
	}
	golden(t, "timer", b.String())
}
