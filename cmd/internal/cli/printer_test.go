package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// watched is a printer that streams, with both of its outputs on one screen.
func watched(tty bool) (*printer, *bytes.Buffer) {
	var screen bytes.Buffer
	s := term.Screen{Writer: &screen, TTY: tty}
	p := newPrinter(&app{set: boot.Settings{Output: "table"}, out: s, err: s})
	p.stream = true
	return p, &screen
}

func says(text string, calls ...protocol.Call) client.Entry {
	content, _ := json.Marshal(client.Text(text))
	return client.Entry{Event: protocol.Event{Turn: &protocol.Turn{Content: content, Calls: calls}}}
}

func token(epoch string, turn int, text string) *client.Token {
	return &client.Token{Epoch: epoch, Token: protocol.Token{Turn: turn, Text: text}}
}

func TestStreamedTextEndsAsTheRecordedText(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*printer) error
		want string
	}{
		{"all tokens came", func(p *printer) error {
			_ = p.token(token("1", 1, "Two "))
			_ = p.token(token("1", 1, "words."))
			return p.entry(says("Two words."))
		}, "Two words.\n"},
		{"none came", func(p *printer) error { return p.entry(says("Two words.\n")) }, "Two words.\n"},
		{"the end is missing", func(p *printer) error {
			_ = p.token(token("1", 1, "Two "))
			return p.entry(says("Two words."))
		}, "Two words.\n"},
		{"another coordinator asked again", func(p *printer) error {
			_ = p.token(token("1", 1, "Perhaps "))
			_ = p.token(token("2", 1, "Two "))
			return p.entry(says("Two words."))
		}, "Perhaps \nTwo words.\n"},
		{"another answer was recorded", func(p *printer) error {
			_ = p.token(token("1", 1, "Perhaps "))
			return p.entry(says("Two words."))
		}, "Perhaps \nTwo words.\n"},
		{"a token comes late", func(p *printer) error {
			_ = p.token(token("1", 1, "Two"))
			err := p.entry(says("Two words."))
			_ = p.token(token("1", 1, " words."))
			return err
		}, "Two words.\n"},
		{"talk came after the whole text", func(p *printer) error {
			_ = p.token(token("1", 1, "Two words."))
			p.talk("connection lost")
			return p.entry(says("Two words."))
		}, "Two words.\nconnection lost\n"},
		{"talk came in the middle", func(p *printer) error {
			_ = p.token(token("1", 1, "Two "))
			p.talk("connection lost")
			return p.entry(says("Two words."))
		}, "Two \nconnection lost\nwords.\n"},
		{"tokens came before the answer of a call", func(p *printer) error {
			_ = p.entry(says("", protocol.Call{ID: "c1", Tool: "hash", Args: json.RawMessage(`{}`), Verdict: protocol.VerdictRun}))
			_ = p.token(token("1", 2, "Two "))
			_ = p.token(token("1", 2, "words."))
			p.answered("c1", protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`1`)})
			if err := p.release(); err != nil {
				return err
			}
			return p.entry(says("Two words."))
		}, "> hash {}\n< hash 1 \nTwo words.\n"},
		{"two turns", func(p *printer) error {
			_ = p.token(token("1", 1, "Let me look."))
			_ = p.entry(says("Let me look."))
			_ = p.token(token("1", 2, "Two"))
			return p.entry(says("Two words."))
		}, "Let me look.\nTwo words.\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, screen := watched(true)
			if err := c.play(p); err != nil {
				t.Fatal(err)
			}
			if screen.String() != c.want {
				t.Errorf("%q, want %q", screen.String(), c.want)
			}
		})
	}
}

func TestCallsAreToldOnceAndBeforeTheTextThatFollows(t *testing.T) {
	p, screen := watched(true)
	call := protocol.Call{ID: "c1", Tool: "hash", Args: json.RawMessage(`{"a": 1}`), Verdict: protocol.VerdictRun}
	refused := protocol.Call{ID: "c2", Tool: "ghost", Verdict: protocol.VerdictRefuse, Refusal: &protocol.Result{Value: protocol.ErrorValue("no tool \x1b[31mghost")}}
	result := protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"result": "x"}`), Worker: "worker-of-long-name", Attempt: 2, Started: 1000, Ended: 2500}
	handed := protocol.Call{ID: "c3", Tool: "transfer_to_agent", Args: json.RawMessage(`{"agent_name": "b"}`), Verdict: protocol.VerdictAnswer, Answer: &protocol.Result{Value: json.RawMessage(`{}`)}}
	instead := protocol.Call{ID: "c4", Tool: "look", Args: json.RawMessage(`{}`), Verdict: protocol.VerdictAnswer, Answer: &protocol.Result{Value: json.RawMessage(`{}`)}}
	if err := p.entry(says("", call, refused, handed, instead)); err != nil {
		t.Fatal(err)
	}
	if p.calls["c3"] != nil {
		t.Error("a call that its turn answered is waited for")
	}
	p.progress(&client.Progress{Call: "c1", Progress: protocol.Progress{Percent: 40, Message: "half\r way"}})
	_ = p.token(token("1", 2, "Well"))
	p.answered("c1", result)
	p.answered("c1", result)
	if err := p.release(); err != nil {
		t.Fatal(err)
	}
	p.progress(&client.Progress{Call: "c1", Progress: protocol.Progress{Percent: 90}})
	lines := bytes.Split(screen.Bytes(), []byte("\n"))
	want := []string{`> hash {"a":1}`, `! ghost refused: no tool \u001b[31mghost`, `> transfer_to_agent {"agent_name":"b"}`, `> look {} (answered by a callback)`, `… hash 40% half\u000d way `, `< hash "x" 1.5s, by worker-o, attempt 2`, `Well`}
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), screen)
	}
	for i := range want {
		if !bytes.HasPrefix(lines[i], []byte(want[i])) {
			t.Errorf("line %d: %q, want %q", i, lines[i], want[i])
		}
	}
}

func TestAQuestionAskedInACallSaysHowToAnswerIt(t *testing.T) {
	for _, tty := range []bool{true, false} {
		p, screen := watched(tty)
		p.a.where = reach{{"data", "d"}}
		word := &client.Progress{Call: "c1", Progress: protocol.Progress{Message: "the server asks: Who\r?", Asks: "q1"}}
		p.progress(word) // of a call that nobody waits for
		if err := p.entry(says("", protocol.Call{ID: "c1", Tool: "login", Args: json.RawMessage(`{}`), Verdict: protocol.VerdictRun})); err != nil {
			t.Fatal(err)
		}
		p.progress(word)
		p.progress(&client.Progress{Call: "c1", Progress: protocol.Progress{Asks: "q1; rm"}})
		p.progress(word) // the answer did not fit
		const asks = ": the server asks: Who\\u000d? call q1\n  toolfabric approvals show q1 --data d\n"
		want := "> login {}\n? login waits" + asks + "? login waits again" + asks
		if screen.String() != want {
			t.Errorf("terminal %v: %q, want %q", tty, screen.String(), want)
		}
	}
}

func TestNothingOfARunActsOnATerminal(t *testing.T) {
	p, screen := watched(true)
	value, _ := json.Marshal(map[string]string{"error": evil, evil: evil})
	call := protocol.Call{ID: "c1", Tool: evil, Args: value, Verdict: protocol.VerdictRun}
	refused := protocol.Call{ID: "c2", Tool: evil, Verdict: protocol.VerdictRefuse, Refusal: &protocol.Result{Value: value}}
	if err := p.entry(says(evil, call, refused)); err != nil {
		t.Fatal(err)
	}
	p.progress(&client.Progress{Call: "c1", Progress: protocol.Progress{Percent: 40, Message: evil}})
	_ = p.token(token("1", 2, evil))
	p.answered("c1", protocol.Result{Outcome: protocol.Outcome(evil), Value: value, Worker: evil, Attempt: 2})
	for _, own := range []string{"\r", "\x1b[K", "\x1b[2K"} { // the line of progress is drawn over
		screen = bytes.NewBuffer(bytes.ReplaceAll(screen.Bytes(), []byte(own), nil))
	}
	if r, found := protocol.HiddenRune(screen.String()); found || screen.Len() == 0 {
		t.Errorf("it shows %U in %q", r, screen)
	}
}

func TestTextOfOthersIsEscapedOnATerminalOnly(t *testing.T) {
	for tty, want := range map[bool]string{true: `\u001b[2J` + "\n", false: "\x1b[2J\n"} {
		p, screen := watched(tty)
		if err := p.entry(says("\x1b[2J")); err != nil {
			t.Fatal(err)
		}
		if screen.String() != want {
			t.Errorf("terminal %v: %q, want %q", tty, screen.String(), want)
		}
	}
	p, screen := watched(true)
	p.a.out.Raw = true
	if err := p.entry(says("\x1b[2J")); err != nil || screen.String() != "\x1b[2J\n" {
		t.Errorf("--raw: %q, %v", screen.String(), err)
	}
}
