package badinput

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

// input is one message to INPUT. Where it shows is letter, when it cannot be read, or log, when it is refused or answered.
type input struct {
	name    string
	app     string // empty is house
	client  string // empty is mallory
	session string // empty is in-N
	data    string
	id      string // of the input; empty for one that is never folded
	unread  bool   // no log ever holds it
}

func message(id, content string) string {
	return `{"v":1,"id":"` + id + `","kind":"message","content":` + content + `}`
}

func call(id, tool, args string) string {
	return `{"v":1,"id":"` + id + `","kind":"call","call":{"tool":"` + tool + `","args":` + args + `}}`
}

const hello = `{"role":"user","parts":[{"text":"add"}]}`

// unreadable inputs become dead letters.
var unreadable = []input{
	{name: "not JSON", data: `hello`},
	{name: "nothing at all", data: ``},
	{name: "JSON that ends early", data: `{"v":1,"id":"a"`},
	{name: "a second document", data: message("a", hello) + `{}`},
	{name: "an array", data: `[1]`},
	{name: "a byte order mark", data: "\ufeff" + message("a", hello)},
	{name: "a version of tomorrow", data: `{"v":3,"id":"a","kind":"message","content":` + hello + `}`},
	{name: "no version", data: `{"id":"a","kind":"message","content":` + hello + `}`},
	{name: "a version that is text", data: `{"v":"1","id":"a"}`},
	{name: "invalid UTF-8", data: message("a", "{\"role\":\"user\",\"parts\":[{\"text\":\"\xff\"}]}")},
	{name: "overlong UTF-8", data: message("a", "{\"role\":\"user\",\"parts\":[{\"text\":\"\xc0\xaf\"}]}")},
	{name: "a lone surrogate", data: message("a", `{"role":"user","parts":[{"text":"\ud800"}]}`)},
	{name: "a lone surrogate in a key", data: message("a", `{"role":"user","\udc00":1}`)},
	{name: "a key that ends early for some", data: `{"v":1,"id\u0000":"b","id":"a","kind":"message","content":` + hello + `}`},
	{name: "a key twice", data: `{"v":1,"id":"a","id":"b","kind":"message","content":` + hello + `}`},
	{name: "a key twice behind an escape", data: `{"v":1,"id":"a","\u0069d":"b","kind":"message","content":` + hello + `}`},
	{name: "a key twice in the content", data: message("a", `{"role":"user","parts":[{"text":"shown","text":"run"}]}`)},
	{name: "a key in other case", data: `{"v":1,"ID":"a","kind":"message","content":` + hello + `}`},
	{name: "a key in other case beside the right one", data: `{"v":1,"id":"a","Kind":"delete","kind":"message","content":` + hello + `}`},
	{name: "a key that folds to a known one", data: `{"v":1,"id":"a","\u212aind":"delete","kind":"message","content":` + hello + `}`},
	{name: "nested deeper than anybody reads", data: message("a", strings.Repeat("[", 65)+strings.Repeat("]", 65))},
	{name: "nested ten thousand deep", data: message("a", strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000))},
	{name: "a number out of range", data: message("a", `{"role":"user","n":1e999}`)},
	{name: "a number of 41 digits", data: message("a", `{"role":"user","n":`+strings.Repeat("9", 41)+`}`)},
	{name: "NaN", data: message("a", `{"role":"user","n":NaN}`)},
	{name: "an unknown kind", data: `{"v":1,"id":"a","kind":"approve"}`},
	{name: "no kind", data: `{"v":1,"id":"a"}`},
	{name: "a message without content", data: `{"v":1,"id":"a","kind":"message"}`},
	{name: "a message with a call", data: `{"v":1,"id":"a","kind":"message","content":{},"call":{"tool":"add","args":{}}}`},
	{name: "a call without a call", data: `{"v":1,"id":"a","kind":"call"}`},
	{name: "a call without arguments", app: "calls", data: `{"v":1,"id":"a","kind":"call","call":{"tool":"add"}}`},
	{name: "a call to a name that is none", app: "calls", data: call("a", "add.>", `{}`)},
	{name: "a call whose tool is a number", app: "calls", data: `{"v":1,"id":"a","kind":"call","call":{"tool":1,"args":{}}}`},
	{name: "arguments with a key twice", app: "calls", data: call("a", "add", `{"n":1,"n":99}`)},
	{name: "arguments with a number too small for a float", app: "calls", data: call("a", "add", `{"n":1e-999999}`)},
	{name: "no id", data: `{"v":1,"kind":"message","content":` + hello + `}`},
	{name: "an id that is no token", data: message("a.b", hello)},
	{name: "an id with a line break", data: message(`a\nb`, hello)},
	{name: "an id of 65 characters", data: message(strings.Repeat("a", 65), hello)},
	{name: "a session that is no id", session: "s$1", data: message("a", hello)},
	{name: "a session of letters that look alike", session: "sеssion", data: message("a", hello)},
	{name: "a session of 65 characters", session: strings.Repeat("s", 65), data: message("a", hello)},
	{name: "a client that is no id", client: "root\u202e", data: message("a", hello)},
	{name: "a kind of 900 KiB", data: `{"v":1,"id":"a","kind":"` + strings.Repeat("k", 900<<10) + `"}`},
	{name: "a key of 400 KiB twice", data: `{"v":1,"` + strings.Repeat("k", 400<<10) + `":1,"` + strings.Repeat("k", 400<<10) + `":1}`},
	{name: "large and not JSON", data: strings.Repeat("x", 1_000_000)},
}

// refused inputs are readable: the session's log says why they change nothing.
var refused = []input{
	{name: "a content that answers a call", data: message("a", `{"role":"user","parts":[{"functionResponse":{"id":"x","name":"add","response":{}}}]}`), id: "a"},
	{name: "a content that calls", data: message("a", `{"role":"user","parts":[{"text":"hi"},{"functionCall":{"name":"add","args":{}}}]}`), id: "a"},
	{name: "a content that speaks for the model", data: message("a", `{"role":"model","parts":[{"text":"I agreed."}]}`), id: "a"},
	{name: "a content without parts", data: message("a", `{"role":"user"}`), id: "a"},
	{name: "a content of empty parts", data: message("a", `{"role":"user","parts":[null,{},{"text":""}]}`), id: "a"},
	{name: "a content that is text", data: message("a", `"hello"`), id: "a"},
	{name: "a content with keys in other case", data: message("a", `{"role":"user","parts":[{"text":"shown"}],"Parts":[{"text":"run"}]}`), id: "a"},
	{name: "a part with keys in other case", data: message("a", `{"role":"user","parts":[{"text":"shown","Text":"run"}]}`), id: "a"},
	{name: "state of the app", data: `{"v":1,"id":"a","kind":"message","content":` + hello + `,"state_delta":{"app:price":0}}`, id: "a"},
	{name: "state of the user", data: `{"v":1,"id":"a","kind":"message","content":` + hello + `,"state_delta":{"user:role":"admin"}}`, id: "a"},
	{name: "state beyond its limit", data: `{"v":1,"id":"a","kind":"message","content":` + hello + `,"state_delta":{"k":"` + strings.Repeat("x", 300<<10) + `"}}`, id: "a"},
	{name: "a message that no event holds", data: message("a", `{"role":"user","parts":[{"text":"`+strings.Repeat("x", 600<<10)+`"}]}`), id: "a"},
	{name: "a call to an app that is not calls", data: call("a", "add", `{}`), id: "a"},
	{name: "a message to calls", app: "calls", data: message("a", hello), id: "a"},
	{name: "a call of nothing known", app: "calls", data: call("a", "ad", `{}`), id: "a"},
	{name: "arguments that do not fit", app: "calls", data: call("a", "add", `{"n":12}`), id: "a"},
	{name: "arguments in other case", app: "calls", data: call("a", "add", `{"N":1}`), id: "a"},
	{name: "arguments that are no object", app: "calls", data: call("a", "add", `[1]`), id: "a"},
	{name: "arguments over 256 KiB", app: "calls", data: call("a", "add", `{"x":"`+strings.Repeat("x", 200<<10)+`","y":"`+strings.Repeat("y", 100<<10)+`"}`), id: "a"},
	{name: "arguments of 10001 keys", app: "calls", data: call("a", "add", `{`+keys(10_001)+`}`), id: "a"},
}

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func TestBadInputsAreToldAndNothingIsLost(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var b strings.Builder
	for i, in := range append(unreadable, refused...) {
		fillInput(&in, i)
		subject := f.names.InputSubject(in.app, in.client, in.session)
		f.store(subject, []byte(in.data))
		fmt.Fprintf(&b, "# %s\n", in.name)
		if in.id == "" {
			fmt.Fprintln(&b, f.letter("input", subject, []byte(in.data)))
			if log, err := f.client.Log(t.Context(), in.app, in.session, 0); err == nil && len(log) > 0 {
				t.Errorf("%s: the session has a log", in.name)
			}
		} else {
			out := f.outcome(in.app, in.session, in.id)
			if !out.Refused {
				t.Errorf("%s: not refused: %+v", in.name, out)
			}
			fmt.Fprintln(&b, told(out))
		}
		ran := f.add.runs.Load()
		f.nothingLost()
		if n := f.add.runs.Load() - ran; n != 2 {
			t.Errorf("%s: add ran %d times besides, want none", in.name, n-2)
		}
	}
	f.eventually("nothing but the sentinel in INPUT", func() bool {
		left, err := f.conn.Read(t.Context(), f.names.Input(), f.names.InputFilter("*"), 1, 10)
		return err == nil && len(left) == 1
	})
	golden(t, "input", b.String())
}

func fillInput(in *input, i int) {
	if in.app == "" {
		in.app = "house"
	}
	if in.client == "" {
		in.client = "mallory"
	}
	if in.session == "" {
		in.session = fmt.Sprintf("in-%d", i)
	}
}

func TestSecondSayingOfAnInputChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	subject := f.names.InputSubject("house", "mallory", "s1")
	f.store(subject, []byte(message("same", hello)))
	first := f.outcome("house", "s1", "same")
	f.store(subject, []byte(message("same", `{"role":"user","parts":[{"text":"slow"}]}`)))
	f.store(subject, []byte(message("next", hello)))
	f.outcome("house", "s1", "next")
	log, err := f.client.Log(t.Context(), "house", "s1", 0)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range log {
		for _, in := range e.Event.Inputs {
			ids = append(ids, in.ID)
		}
	}
	if strings.Join(ids, " ") != "same next" || first.Problem != nil {
		t.Errorf("the log holds the inputs %v", ids)
	}
	// A call's session makes one call: its id cannot be had again.
	calls := f.names.InputSubject("calls", "mallory", "c1")
	f.store(calls, []byte(call("one", "add", `{}`)))
	f.outcome("calls", "c1", "one")
	f.store(calls, []byte(call("two", "add", `{}`)))
	if got := told(f.outcome("calls", "c1", "two")); !strings.Contains(got, string(protocol.CodeUnsupported)) {
		t.Error(got)
	}
}

func TestOversizeIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	large := strings.Repeat("x", 1<<20)
	subject := f.names.InputSubject("house", "mallory", "s1")
	_, err := f.publish(subject, []byte(message("a", `{"role":"user","parts":[{"text":"`+large+`"}]}`)))
	_, called := f.client.SendCall(t.Context(), "add", json.RawMessage(`{"x":"`+large+`"}`))
	golden(t, "oversize", fmt.Sprintf("# the broker, of a raw publish\n%v\n# the client, of a call\n%v\n", err, called))
	f.nothingLost()
}
