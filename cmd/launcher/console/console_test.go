package console

import (
	"context"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/cmd/launcher"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type payArgs struct {
	To string `json:"to"`
}

func teller(t *testing.T) *launcher.Config {
	t.Helper()
	s, err := scripted.Parse([]byte(`
rules:
  - user: 'pay (?P<who>.+)'
    calls: [{tool: pay, args: {to: '{{ .who }}'}}]
  - after: [pay]
    text: '{{ json (index .results.pay 0).value }}'
  - user: 'fail'
    error: {status: 400, message: no}
  - user: '.+'
    text: "You said \e[31m{{ .user }}."
`))
	if err != nil {
		t.Fatal(err)
	}
	pay, err := functiontool.New(functiontool.Config{Name: "pay", RequireConfirmation: true}, func(_ tool.Context, in payArgs) (string, error) {
		return "paid " + in.To, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "teller", Model: scripted.New("scripted", s), Tools: []tool.Tool{pay}})
	if err != nil {
		t.Fatal(err)
	}
	return &launcher.Config{AgentLoader: agent.NewSingleLoader(a)}
}

// talkAbout types lines and returns what the terminal shows.
func talkAbout(t *testing.T, args []string, lines ...string) string {
	t.Helper()
	var out strings.Builder
	l := NewLauncher()
	l.in, l.out = strings.NewReader(strings.Join(lines, "\n")), &out
	if err := l.Execute(t.Context(), teller(t), args); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestConsoleAsksAboutCalls(t *testing.T) {
	t.Parallel()
	got := talkAbout(t, nil, "pay ann", "what?", "y", "pay bob", "no")
	want := `
User -> 
Agent -> 
pay waits for your word: {"to":"ann"}
Run it? y = yes, n = no, l = decide later: Run it? y = yes, n = no, l = decide later: 
Agent -> "paid ann"
User -> 
Agent -> 
pay waits for your word: {"to":"bob"}
Run it? y = yes, n = no, l = decide later: 
Agent -> {"error":"error tool \"pay\" call is rejected"}
User -> 
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestConsoleAsksAgainAboutWhatWasPutOff(t *testing.T) {
	t.Parallel()
	got := talkAbout(t, []string{"--streaming_mode=none"}, "pay ann", "l", "hello", "y")
	for _, want := range []string{"The call waits", "AGENT_ERROR: the message is queued", "You said"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Count(got, "pay waits for your word") != 2 {
		t.Errorf("asked more or less than twice:\n%s", got)
	}
}

func TestConsoleShowsErrorsAndHarmlessText(t *testing.T) {
	t.Parallel()
	got := talkAbout(t, nil, "fail", "", "hello")
	if !strings.Contains(got, "AGENT_ERROR: model_refused") || !strings.Contains(got, `You said \u001b[31mhello.`) || strings.Contains(got, "\x1b") {
		t.Errorf("got:\n%q", got)
	}
}

func TestConsoleEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in, typed := io.Pipe()
	defer typed.Close()
	defer in.Close()
	ctx, cancel := context.WithCancel(t.Context())
	l := NewLauncher()
	l.in, l.out = in, writes(func(text string) {
		if strings.Contains(text, "User ->") {
			cancel()
		}
	})
	if err := l.Execute(ctx, teller(t), nil); err != nil {
		t.Error(err)
	}
}

type writes func(string)

func (w writes) Write(b []byte) (int, error) { w(string(b)); return len(b), nil }

func TestConsoleRefusesArgumentsItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"unknown arguments: help": {"help"},
		"flag provided but":       {"-x"},
		"it is none or sse":       {"-streaming_mode", "bidi"},
	} {
		if err := NewLauncher().Execute(t.Context(), teller(t), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := NewLauncher().Execute(t.Context(), &launcher.Config{}, nil); err == nil || !strings.Contains(err.Error(), "AgentLoader") {
		t.Errorf("no agent: %v", err)
	}
	if text := NewLauncher().CommandLineSyntax(); !strings.Contains(text, "-streaming_mode MODE") {
		t.Errorf("the syntax is %q", text)
	}
}
