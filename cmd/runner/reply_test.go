package runner_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/cmd/runner"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

const payScript = `
rules:
  - user: 'pay (?P<who>[a-z, ]+)'
    calls:
      - {tool: pay, each: {of: '{{ .who }}', as: one}, args: {to: '{{ .one }}'}}
  - after: [pay]
    text: '{{ range .results.pay }}{{ json .value }} {{ end }}'
  - user: '.+'
    text: 'You said {{ .user }}.'
`

type payArgs struct {
	To string `json:"to"`
}

// till is an agent whose payments people agree to.
type till struct {
	*testing.T
	runner  *runner.Runner
	service session.Service
	id      string
	paid    atomic.Int64
}

func newTill(t *testing.T) *till {
	t.Helper()
	p := &till{T: t, service: session.InMemoryService()}
	pay := function(t, functiontool.Config{Name: "pay", RequireConfirmation: true}, func(_ tool.Context, in payArgs) (string, error) {
		p.paid.Add(1)
		return "paid " + in.To, nil
	})
	p.runner = newRunner(t, runner.Config{AppName: "bank", Agent: newAgent(t, "teller", script(t, payScript), pay), SessionService: p.service})
	p.id = begin(t, p.service, session.CreateRequest{AppName: "bank", UserID: "u"}).ID()
	return p
}

func (p *till) say(msg *genai.Content) ([]*session.Event, error) {
	p.Helper()
	return run(p.Context(), p.runner, "u", p.id, msg, agent.RunConfig{})
}

// asked are the questions among events.
func asked(events []*session.Event) []*genai.FunctionCall {
	var all []*genai.FunctionCall
	for _, ev := range events {
		for _, part := range ev.Content.Parts {
			if c := part.FunctionCall; c != nil && c.Name == protocol.ConfirmationFunction {
				all = append(all, c)
			}
		}
	}
	return all
}

func word(q *genai.FunctionCall, response map[string]any) *genai.Part {
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: q.ID, Name: q.Name, Response: response}}
}

// original is the call that a question is about.
func original(t *testing.T, q *genai.FunctionCall) *genai.FunctionCall {
	t.Helper()
	c, err := toolconfirmation.OriginalCallFrom(q)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parts(list ...*genai.Part) *genai.Content {
	return &genai.Content{Role: genai.RoleUser, Parts: list}
}

var (
	granted = map[string]any{"confirmed": true}
	refused = map[string]any{"confirmed": false}
)

func TestAnswersToSeveralQuestionsComeOneByOneOrTogether(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	events, err := p.say(say("pay ann, bob, eve"))
	if err != nil {
		t.Fatal(err)
	}
	q := asked(events)
	if len(q) != 3 || len(events[len(events)-1].LongRunningToolIDs) != 3 {
		t.Fatalf("asked %d questions:\n%s", len(q), lines(events))
	}
	events, err = p.say(parts(word(q[1], granted)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(events), "teller: FR(pay {\"result\":\"paid bob\"})\n"; got != want {
		t.Errorf("after one answer:\n%swant:\n%s", got, want)
	}
	events, err = p.say(parts(word(q[0], refused), word(q[2], granted)))
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(events); !strings.Contains(got, "call is rejected") || !strings.HasSuffix(got, `"paid bob" "paid eve" )`+"\n") {
		t.Errorf("after all answers:\n%s", got)
	}
	if p.paid.Load() != 2 {
		t.Errorf("paid %d times", p.paid.Load())
	}
}

func TestAnAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	events, err := p.say(say("pay ann"))
	if err != nil {
		t.Fatal(err)
	}
	q := asked(events)[0]
	for name, c := range map[string]struct {
		part *genai.Part
		code protocol.Code
	}{
		"no word":            {word(q, nil), protocol.CodeBadMessage},
		"no yes or no":       {word(q, map[string]any{"confirmed": "yes"}), protocol.CodeBadMessage},
		"another question":   {word(&genai.FunctionCall{ID: "nobody", Name: q.Name}, granted), protocol.CodeUnknownConfirm},
		"another call":       {&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "nobody", Name: "pay", Response: granted}}, protocol.CodeNotFound},
		"a call without id":  {&genai.Part{FunctionResponse: &genai.FunctionResponse{Name: "pay", Response: granted}}, protocol.CodeBadMessage},
		"what has no result": {&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: original(t, q).ID, Name: "pay", Response: granted}}, protocol.CodeBadMessage},
	} {
		if events, err := p.say(parts(c.part)); protocol.CodeOf(err) != c.code || len(events) > 0 {
			t.Errorf("%s: %v after\n%s", name, err, lines(events))
		}
	}
	if _, err := p.say(parts(word(q, map[string]any{"response": `{"confirmed":true}`}))); err != nil {
		t.Error(err)
	}
	if _, err := p.say(parts(word(q, refused))); protocol.CodeOf(err) != protocol.CodeDecided {
		t.Errorf("a second word: %v", err)
	}
	if p.paid.Load() != 1 {
		t.Errorf("paid %d times", p.paid.Load())
	}
}

func TestWhatIsSaidWhileCallsWaitIsTakenUpAfterwards(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	events, err := p.say(say("pay ann"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.say(say("hello")); !errors.Is(err, runner.ErrQueued) || !strings.Contains(err.Error(), "a decision on pay") {
		t.Errorf("a message meanwhile: %v", err)
	}
	events, err = p.say(parts(word(asked(events)[0], granted), genai.NewPartFromText("thanks")))
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(events); !strings.Contains(got, "paid ann") || !strings.Contains(got, "T(You said") {
		t.Errorf("the answer and a text with it:\n%s", got)
	}
	if p.paid.Load() != 1 {
		t.Errorf("paid %d times", p.paid.Load())
	}
}

func TestAResultFromOutside(t *testing.T) {
	t.Parallel()
	service := session.InMemoryService()
	order := function(t, functiontool.Config{Name: "order", IsLongRunning: true}, func(tool.Context, map[string]any) (map[string]any, error) { return nil, nil })
	r := newRunner(t, runner.Config{Agent: newAgent(t, "buyer", script(t, `
rules:
  - user: 'order'
    calls: [{tool: order}]
  - after: [order]
    text: 'now {{ json (index .results.order 0).value }}'
`), order), SessionService: service, AutoCreateSession: true})
	ask := func(msg *genai.Content) ([]*session.Event, error) {
		return run(t.Context(), r, "u", "s", msg, agent.RunConfig{})
	}
	events, err := ask(say("order"))
	if err != nil || len(events) != 1 || len(events[0].LongRunningToolIDs) != 1 {
		t.Fatalf("%v\n%s", err, lines(events))
	}
	call := events[0].Content.Parts[0].FunctionCall
	result := func(goesOn bool, state string) *genai.Content {
		return parts(&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: call.ID, Name: call.Name, WillContinue: &goesOn, Response: map[string]any{"state": state}}})
	}
	for _, step := range []struct {
		goesOn bool
		state  string
	}{{true, "packed"}, {false, "sent"}} {
		events, err := ask(result(step.goesOn, step.state))
		want := `buyer: FR(order {"state":"` + step.state + `"})` + "\n" + `buyer: T(now {"state":"` + step.state + `"})` + "\n"
		if err != nil || lines(events) != want {
			t.Errorf("%s: %v\n%s", step.state, err, lines(events))
		}
	}
	if _, err := ask(result(false, "lost")); protocol.CodeOf(err) != protocol.CodeAnswered {
		t.Errorf("a result too many: %v", err)
	}
}

func TestTheEndOfTheContextCancelsTheRun(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	ended := make(chan error, 1)
	slow := function(t, functiontool.Config{Name: "slow"}, func(ctx tool.Context, _ map[string]any) (string, error) {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "", ctx.Err()
	})
	r := newRunner(t, runner.Config{Agent: newAgent(t, "sleeper", script(t, "rules: [{user: go, calls: [{tool: slow}]}, {after: [slow], text: done}]"), slow), SessionService: session.InMemoryService(), AutoCreateSession: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	events, err := run(ctx, r, "u", "s", say("go"), agent.RunConfig{})
	if !errors.Is(err, context.Canceled) || len(events) != 1 {
		t.Errorf("%v after\n%s", err, lines(events))
	}
	if cause := <-ended; protocol.CodeOf(cause) != protocol.CodeCancelled {
		t.Errorf("the tool was ended by %v", cause)
	}
}
