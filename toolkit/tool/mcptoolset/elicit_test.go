package mcptoolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

// older is a transport that does not speak the newest protocol.
type older struct{ mcp.Transport }

func (older) SupportsProtocolVersion(version string) bool { return version < "2026-07-28" }

// serveOld is serve by the protocol 2025-11-25.
func serveOld(t *testing.T, s *mcp.Server, cfg mcptoolset.Config) tool.Toolset {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	session, err := s.Connect(t.Context(), older{there}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Wait() })
	cfg.Transport = here
	return open(t, cfg)
}

var nameForm = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","minLength":2}},"required":["name"]}`)

// asks elicits n times in a call, and answers what it was told.
func asks(n int) *mcp.Server {
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		said := ""
		for range n {
			res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who?", RequestedSchema: nameForm})
			if err != nil {
				return nil, err
			}
			b, _ := json.Marshal(res)
			said += string(b)
		}
		return text(said), nil
	})
	return s
}

func TestAnOlderServersQuestionIsAskedInTheCall(t *testing.T) {
	accept := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}
	for name, c := range map[string]struct {
		elicit func(context.Context, mcptoolset.Question) (*mcp.ElicitResult, error)
		want   string
	}{
		"accepted": {func(context.Context, mcptoolset.Question) (*mcp.ElicitResult, error) { return accept, nil }, `{"action":"accept","content":{"name":"Ann"}}`},
		"declined": {func(context.Context, mcptoolset.Question) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}, `{"action":"decline"}`},
		"cannot be": {func(context.Context, mcptoolset.Question) (*mcp.ElicitResult, error) {
			return nil, errors.New("no bus")
		}, `{"action":"cancel"}`},
		"nobody to ask": {nil, `{"action":"cancel"}`},
	} {
		t.Run(name, func(t *testing.T) {
			it := one(t, serveOld(t, asks(1), mcptoolset.Config{Elicit: c.elicit}))
			r := run(t, it, `{}`)
			var v struct{ Output string }
			if err := json.Unmarshal(r.Value, &v); err != nil || v.Output != c.want {
				t.Errorf("the server was told %s, want %s", r.Value, c.want)
			}
		})
	}
}

func TestAQuestionNamesTheOnlyCall(t *testing.T) {
	var q mcptoolset.Question
	it := one(t, serveOld(t, asks(1), mcptoolset.Config{Prefix: "p", Elicit: func(_ context.Context, asked mcptoolset.Question) (*mcp.ElicitResult, error) {
		q = asked
		q.Asked("q1")
		return &mcp.ElicitResult{Action: "decline"}, nil
	}}))
	c := call(`{}`)
	var told protocol.Progress
	c.Progress = func(p protocol.Progress) { told = p }
	_, _ = it.Run(t.Context(), c)
	if told.Message != "the MCP server asks a person: Who?" || told.Asks != "q1" {
		t.Errorf("whoever watches the call is told %+v", told)
	}
	if q.Tool != "p_x" || q.Call != c.Envelope.Call || q.Session != "s1" || q.Message != "Who?" {
		t.Errorf("got %+v", q)
	}
}

func TestAQuestionHoldsItsCallUpToALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there, here := mcp.NewInMemoryTransports()
		session, err := asks(1).Connect(t.Context(), older{there}, nil)
		if err != nil {
			t.Fatal(err)
		}
		set, err := mcptoolset.New(mcptoolset.Config{Transport: here, Idle: time.Minute, ElicitLimit: 5 * time.Minute, Elicit: func(ctx context.Context, _ mcptoolset.Question) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		want(t, run(t, one(t, set), `{}`), protocol.OutcomeCompleted, `{"output":"{\"action\":\"cancel\"}"}`)
		if took := time.Since(from); took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("it took %s, want the limit of 5m", took)
		}
		set.(interface{ Close() error }).Close()
		_ = session.Wait()
	})
}

func TestAStormOfQuestionsIsBounded(t *testing.T) {
	var asked, at, most atomic.Int64
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _, _ = req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who?", RequestedSchema: nameForm}) })
		}
		all.Wait()
		return text("ok"), nil
	})
	it := one(t, serveOld(t, s, mcptoolset.Config{Elicit: func(context.Context, mcptoolset.Question) (*mcp.ElicitResult, error) {
		asked.Add(1)
		most.Store(max(most.Load(), at.Add(1)))
		defer at.Add(-1)
		return &mcp.ElicitResult{Action: "decline"}, nil
	}}))
	want(t, run(t, it, `{}`), protocol.OutcomeCompleted, "")
	if asked.Load() != 8 || most.Load() != 1 {
		t.Errorf("%d questions were asked, %d at once; want 8, one at a time", asked.Load(), most.Load())
	}
}

// resume carries what a round set into the next one, as a coordinator does.
func resume(c invoke.Call, r protocol.Result, word *protocol.Confirmed) invoke.Call {
	c.Envelope.Round++
	c.Envelope.Confirmation = word
	state := map[string]json.RawMessage{}
	for k, v := range c.Envelope.State {
		state[k] = v
	}
	if r.Actions != nil {
		for k, v := range r.Actions.StateDelta {
			state[k] = v
		}
	}
	c.Envelope.State = state
	return c
}

// parks answers with a question until it has the answers to all.
func parks(questions map[string]*mcp.ElicitParams) *mcp.Server {
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(req.Params.InputResponses) == 0 {
			in := mcp.InputRequestMap{}
			for id, q := range questions {
				in[id] = q
			}
			return &mcp.CallToolResult{InputRequests: in, RequestState: "sealed"}, nil
		}
		b, _ := json.Marshal(req.Params.InputResponses)
		return text(req.Params.RequestState + " " + string(b)), nil
	})
	return s
}

func TestAQuestionOfTheNewProtocolParksTheCall(t *testing.T) {
	site := newSite(t)
	server := parks(map[string]*mcp.ElicitParams{"q1": {Mode: "form", Message: "Who?", RequestedSchema: nameForm}})
	site.become(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	set := open(t, mcptoolset.Config{Endpoint: site.URL, Prefix: "p"})
	it := one(t, set)
	first := call(`{}`)
	r, _ := it.Run(t.Context(), first)
	if r.Outcome != protocol.OutcomeAsks || r.Ask == nil || !strings.Contains(r.Ask.Hint, "Who?") || !strings.Contains(r.Ask.Hint, "p_x") || !strings.Contains(string(r.Ask.Payload), `"requested_schema"`) {
		t.Fatalf("got %s %s, ask %+v", r.Outcome, r.Value, r.Ask)
	}
	if strings.Contains(string(r.Ask.Payload)+r.Ask.Hint, "sealed") {
		t.Error("the person sees the server's state")
	}
	// Another worker goes on with it.
	it = one(t, open(t, mcptoolset.Config{Endpoint: site.URL, Prefix: "p"}))
	second := resume(first, r, &protocol.Confirmed{ID: "c", Confirmed: true, Payload: json.RawMessage(`{"name":"A"}`)})
	r, _ = it.Run(t.Context(), second)
	if r.Outcome != protocol.OutcomeAsks || !strings.Contains(r.Ask.Hint, "does not fit") {
		t.Fatalf("a payload that does not fit: got %s %s, ask %+v", r.Outcome, r.Value, r.Ask)
	}
	third := resume(second, r, &protocol.Confirmed{ID: "c", Confirmed: true, Payload: json.RawMessage(`{"name":"Ann"}`)})
	r, _ = it.Run(t.Context(), third)
	want(t, r, protocol.OutcomeCompleted, `{"output":"sealed {\"q1\":{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}}"}`)
	refused := resume(first, protocol.Result{Actions: &protocol.Actions{StateDelta: second.Envelope.State}}, &protocol.Confirmed{ID: "c"})
	r, _ = it.Run(t.Context(), refused)
	want(t, r, protocol.OutcomeCompleted, `{"output":"sealed {\"q1\":{\"action\":\"decline\"}}"}`)
}

func TestSeveralQuestionsAreAskedOneAfterTheOther(t *testing.T) {
	it := one(t, serve(t, parks(map[string]*mcp.ElicitParams{
		"a": {Mode: "form", Message: "First?"},
		"b": {Mode: "url", Message: "Second?", URL: "https://example.com/login", ElicitationID: "e"},
	}), mcptoolset.Config{}))
	c := call(`{}`)
	r, _ := it.Run(t.Context(), c)
	for _, hint := range []string{"First?", "Second?"} {
		if r.Outcome != protocol.OutcomeAsks || !strings.Contains(r.Ask.Hint, hint) {
			t.Fatalf("got %s %s, ask %+v, want %s", r.Outcome, r.Value, r.Ask, hint)
		}
		c = resume(c, r, &protocol.Confirmed{ID: "c", Confirmed: true, Payload: r.Ask.Payload}) // as it was shown: no content
		r, _ = it.Run(t.Context(), c)
	}
	want(t, r, protocol.OutcomeCompleted, `{"output":"sealed {\"a\":{\"action\":\"accept\"},\"b\":{\"action\":\"accept\"}}"}`)
}

func TestAServerAsksAPersonOnlySoOften(t *testing.T) {
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Mode: "form", Message: "Again?"}}}, nil
	})
	it := one(t, serve(t, s, mcptoolset.Config{}))
	c := call(`{}`)
	r, _ := it.Run(t.Context(), c)
	n := 0
	for ; r.Outcome == protocol.OutcomeAsks && n < 100; n++ {
		c = resume(c, r, &protocol.Confirmed{ID: "c", Confirmed: true})
		r, _ = it.Run(t.Context(), c)
	}
	if n != 8 || r.Outcome != protocol.OutcomeFailed {
		t.Errorf("after %d questions: %s %s", n, r.Outcome, r.Value)
	}
}

func TestWhatAServerMayNotHaveIsRefused(t *testing.T) {
	for name, res := range map[string]*mcp.CallToolResult{
		"sampling":       {InputRequests: mcp.InputRequestMap{"q": &mcp.CreateMessageParams{MaxTokens: 1}}},
		"too much state": {InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Mode: "form", Message: "?"}}, RequestState: strings.Repeat("x", 64<<10)},
		"a strange URL":  {InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Mode: "url", Message: "?", URL: "javascript:alert(1)", ElicitationID: "e"}}},
	} {
		s := newServer()
		raw(s, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return res, nil })
		if r := run(t, one(t, serve(t, s, mcptoolset.Config{})), `{}`); r.Outcome != protocol.OutcomeFailed {
			t.Errorf("%s: got %s %s", name, r.Outcome, r.Value)
		}
	}
}
