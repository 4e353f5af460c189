package runner_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/cmd/runner"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

const echoScript = `
rules:
  - user: '(?s).+'
    text: 'You said {{ .user }}.'
    chunks: 3
`

func TestTheServiceReadsWhatRunsRecord(t *testing.T) {
	t.Parallel()
	service := session.InMemoryService()
	r := newRunner(t, runner.Config{AppName: "talk", Agent: newAgent(t, "echo", script(t, echoScript)), SessionService: service})
	begin(t, service, session.CreateRequest{AppName: "talk", UserID: "ann", SessionID: "default", State: map[string]any{"mood": "good", "temp:x": 1}})
	begin(t, service, session.CreateRequest{AppName: "talk", UserID: "bob@example.com", SessionID: "default"})
	for user, text := range map[string]string{"ann": "I am Ann", "bob@example.com": "I am Bob"} {
		if _, err := run(t.Context(), r, user, "default", say(text), agent.RunConfig{}, runner.WithStateDelta(map[string]any{"text": text})); err != nil {
			t.Fatal(err)
		}
	}
	get := func(user string) (session.Session, error) {
		resp, err := service.Get(t.Context(), &session.GetRequest{AppName: "talk", UserID: user, SessionID: "default"})
		if err != nil {
			return nil, err
		}
		return resp.Session, nil
	}
	ann, err := get("ann")
	if err != nil {
		t.Fatal(err)
	}
	if state := maps.Collect(ann.State().All()); len(state) != 2 || state["mood"] != "good" || state["text"] != "I am Ann" {
		t.Errorf("state %v", state)
	}
	if n := ann.Events().Len(); n != 2 || ann.Events().At(0).Author != "user" || ann.Events().At(1).Content.Parts[0].Text != "You said I am Ann." {
		t.Errorf("%d events", n)
	}
	list, err := service.List(t.Context(), &session.ListRequest{AppName: "talk"})
	if err != nil || len(list.Sessions) != 2 || list.Sessions[1].UserID() != "bob@example.com" || list.Sessions[1].ID() != "default" || list.Sessions[1].Events().Len() != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := service.Delete(t.Context(), &session.DeleteRequest{AppName: "talk", UserID: "ann", SessionID: "default"}); err != nil {
		t.Fatal(err)
	}
	if _, err := get("ann"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a deleted session: %v", err)
	}
	if _, err := get("bob@example.com"); err != nil {
		t.Errorf("the other user's: %v", err)
	}
	if _, err := run(t.Context(), r, "ann", "default", say("hello"), agent.RunConfig{}); err == nil {
		t.Error("a deleted session speaks")
	}
}

func TestPiecesOfTextMakeTheAnswer(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runner.Config{Agent: newAgent(t, "echo", script(t, echoScript)), SessionService: session.InMemoryService(), AutoCreateSession: true})
	events, err := run(t.Context(), r, "u", "s", say("a long text"), agent.RunConfig{StreamingMode: agent.StreamingModeSSE})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, ev := range events[:len(events)-1] {
		if !ev.Partial || ev.IsFinalResponse() || ev.Author != "echo" {
			t.Errorf("a piece is %+v", ev)
		}
		text.WriteString(ev.Content.Parts[0].Text)
	}
	last := events[len(events)-1]
	if last.Partial || last.Content.Parts[0].Text != text.String() || text.String() != "You said a long text." {
		t.Errorf("pieces %q, whole %+v", text.String(), last.Content.Parts[0])
	}
}

func TestSessionsOnDiskOutliveTheRunner(t *testing.T) {
	t.Parallel()
	where := runner.Fabric{Data: t.TempDir()}
	for n := range 2 {
		service := session.InMemoryService()
		r := newRunner(t, runner.Config{AppName: "talk", Agent: newAgent(t, "echo", script(t, echoScript)), SessionService: service, Fabric: where})
		s := begin(t, service, session.CreateRequest{AppName: "talk", UserID: "u", SessionID: "mine"})
		if got := s.Events().Len(); got != 2*n {
			t.Errorf("it begins with %d events in life %d", got, n)
		}
		if _, err := run(t.Context(), r, "u", "mine", say("hello"), agent.RunConfig{}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Run(t.Context(), "u", "mine", say("hello"), agent.RunConfig{}) {
			if err == nil {
				t.Error("a closed runner runs")
			}
		}
	}
}

func TestRunnersShareAServer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	where := runner.Fabric{NATS: server.URL(), Namespace: "shared"}
	one := newAgent(t, "echo", script(t, echoScript))
	for _, user := range []string{"ann", "bob"} {
		r := newRunner(t, runner.Config{Agent: one, SessionService: session.InMemoryService(), AutoCreateSession: true, Fabric: where})
		events, err := run(t.Context(), r, user, "s", say(user), agent.RunConfig{})
		if err != nil || lines(events) != "echo: T(You said "+user+".)\n" {
			t.Errorf("%v\n%s", err, lines(events))
		}
	}
	_, err := runner.New(runner.Config{Agent: newAgent(t, "echo", script(t, echoScript)), SessionService: session.InMemoryService(), Fabric: where})
	if protocol.CodeOf(err) != protocol.CodeUsage {
		t.Errorf("another agent of the same name: %v", err)
	}
}

func TestWhatCannotBeIsSaidAtConstruction(t *testing.T) {
	t.Parallel()
	echo := newAgent(t, "echo", script(t, echoScript))
	service := session.InMemoryService()
	bare, err := agent.New(agent.Config{Name: "bare"})
	if err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]runner.Config{
		"agent is required":           {SessionService: service},
		"make it with llmagent.New":   {Agent: bare, SessionService: service},
		"session service is required": {Agent: echo},
		"not in a runner_test.own":    {Agent: echo, SessionService: own{service}},
		"runs on one of them":         {Agent: echo, SessionService: service, Fabric: runner.Fabric{NATS: "nats://127.0.0.1:1", Data: "x"}},
		"no connection":               {Agent: echo, SessionService: service, Fabric: runner.Fabric{NATS: "nats://127.0.0.1:1"}},
	} {
		if r, err := runner.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v, %v", want, r, err)
		}
	}
	newRunner(t, runner.Config{AppName: "one", Agent: echo, SessionService: service})
	if _, err := runner.New(runner.Config{AppName: "one", Agent: newAgent(t, "other", script(t, echoScript)), SessionService: service}); err == nil {
		t.Error("an app has two agents")
	}
}

type own struct{ session.Service }

func TestARunRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runner.Config{Agent: newAgent(t, "echo", script(t, echoScript)), SessionService: session.InMemoryService(), AutoCreateSession: true})
	for name, c := range map[string]struct {
		user, id string
		cfg      agent.RunConfig
		delta    map[string]any
		code     protocol.Code
	}{
		"a mode":       {user: "u", id: "s", cfg: agent.RunConfig{StreamingMode: "bidi"}, code: protocol.CodeUnsupported},
		"artifacts":    {user: "u", id: "s", cfg: agent.RunConfig{SaveInputBlobsAsArtifacts: true}, code: protocol.CodeUnsupported},
		"no user":      {id: "s", code: protocol.CodeBadID},
		"no session":   {user: "u", code: protocol.CodeBadID},
		"app's state":  {user: "u", id: "s", delta: map[string]any{"app:x": 1}, code: protocol.CodeUnsupported},
		"what is none": {user: "u", id: "s", delta: map[string]any{"x": make(chan int)}, code: protocol.CodeBadMessage},
	} {
		if events, err := run(t.Context(), r, c.user, c.id, say("hello"), c.cfg, runner.WithStateDelta(c.delta)); protocol.CodeOf(err) != c.code || len(events) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := run(t.Context(), r, "u", "s", nil, agent.RunConfig{}); protocol.CodeOf(err) != protocol.CodeBadMessage {
		t.Errorf("no message: %v", err)
	}
}

func TestAModelThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runner.Config{Agent: newAgent(t, "broken", script(t, "rules: [{user: x, error: {status: 400, message: no such model}}]")), SessionService: session.InMemoryService(), AutoCreateSession: true})
	events, err := run(t.Context(), r, "u", "s", say("x"), agent.RunConfig{})
	if protocol.CodeOf(err) != protocol.CodeModelRefused || len(events) > 0 {
		t.Errorf("%v after\n%s", err, lines(events))
	}
}

func TestALongSessionGoesOnFromItsSnapshot(t *testing.T) {
	t.Parallel()
	service := session.InMemoryService()
	r := newRunner(t, runner.Config{AppName: "talk", Agent: newAgent(t, "echo", script(t, echoScript)), SessionService: service})
	begin(t, service, session.CreateRequest{AppName: "talk", UserID: "u", SessionID: "s"})
	const runs = 80 // more than 100 events of the log, after which it holds a snapshot
	for range runs {
		events, err := run(t.Context(), r, "u", "s", say("again"), agent.RunConfig{})
		if err != nil || lines(events) != "echo: T(You said again.)\n" {
			t.Fatalf("%v\n%s", err, lines(events))
		}
	}
	got, err := service.Get(t.Context(), &session.GetRequest{AppName: "talk", UserID: "u", SessionID: "s"})
	if err != nil || got.Session.Events().Len() != 2*runs {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := run(t.Context(), r, "u", "s", say("again"), agent.RunConfig{}); err != nil {
		t.Error(err)
	}
}
