package sim_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
	"github.com/toolfabric/toolfabric/tests/sim"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

// secret is what somebody typed: it may stand on no span.
const secret = "hunter2"

const hashes = `
rules:
  - user: 'hash (?P<word>\w+)'
    calls:
      - {tool: hash, args: {word: '{{ .word }}'}}
  - user: 'hash'
    after: [hash]
    text: 'it was ` + secret + `'
`

type password struct {
	Word string `json:"word"`
}

// traced has a coordinator and a worker run one input on a plain World, and returns their spans and the session's log. A
// gated call is agreed to ten seconds after it was asked for.
func traced(t *testing.T, app string, in protocol.Input, h natswire.Header, gated bool) (spans tracetest.SpanStubs, log []protocol.Event) {
	t.Helper()
	recorder := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(recorder))
	script, err := scripted.Parse([]byte(hashes))
	if err != nil {
		t.Fatal(err)
	}
	helper, err := llmagent.New(llmagent.Config{Name: "helper", Model: scripted.New("scripted", script), Instruction: "Mind " + secret, Tools: []tool.Tool{tool.Pool("hash")}})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := functiontool.New(functiontool.Config{Name: "hash", Description: "Hashes", Effect: tool.Read, RequireConfirmation: gated}, func(_ tool.Context, in password) (map[string]string, error) {
		return map[string]string{"of": in.Word}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	in.V, in.ID = protocol.Version, "in-1"
	data, err := protocol.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := names(t)
		w := sim.New(sim.Config{Names: n})
		var nodes sync.WaitGroup
		defer nodes.Wait()
		defer w.Close()
		c1, w1, client := w.Connect("c1"), w.Connect("w1"), w.Connect("client")
		c, err := coordinator.New(coordinator.Config{Bus: c1, Names: n, Clock: c1.Clock(), Agents: []agent.Agent{helper}, Tracer: provider})
		if err != nil {
			t.Fatal(err)
		}
		nodes.Go(func() { _ = c.Run(c1.Context()) })
		wk, err := worker.New(worker.Config{Bus: w1, Names: n, Clock: w1.Clock(), ID: "w1", Tools: []tool.Tool{hash}, Tracer: provider})
		if err != nil {
			t.Fatal(err)
		}
		nodes.Go(func() { _ = wk.Run(w1.Context()) })
		<-time.After(time.Second) // the tool is known
		if _, err := client.Publish(t.Context(), natswire.Msg{Subject: n.InputSubject(app, "me", "s1"), Data: data, Header: h}); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		for _, m := range w.Messages(n.Log()) {
			ev, err := protocol.DecodeEvent(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			if !gated || ev.Turn == nil {
				continue
			}
			subject := n.ApprovalSubject(app, "s1", ev.Turn.Calls[0].Confirmation.ID, "ann")
			if _, err := client.Publish(t.Context(), natswire.Msg{Subject: subject, Data: []byte(`{"confirmed":true}`)}); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Second)
		}
		for _, m := range w.Messages(n.Log()) {
			ev, err := protocol.DecodeEvent(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			log = append(log, ev)
		}
	})
	if len(log) == 0 || log[len(log)-1].Stop == nil {
		t.Fatalf("the run has not ended: %+v", log)
	}
	return recorder.GetSpans(), log
}

// tree writes spans as lines: kind and name, indented below their parents, in the order they began.
func tree(spans tracetest.SpanStubs) string {
	var b strings.Builder
	var below func(parent trace.SpanID, depth int)
	below = func(parent trace.SpanID, depth int) {
		var here []tracetest.SpanStub
		for _, s := range spans {
			if s.Parent.SpanID() == parent {
				here = append(here, s)
			}
		}
		for len(here) > 0 {
			first := 0
			for i := range here {
				if here[i].StartTime.Before(here[first].StartTime) {
					first = i
				}
			}
			s := here[first]
			here = append(here[:first], here[first+1:]...)
			b.WriteString(strings.Repeat("  ", depth) + s.SpanKind.String() + " " + s.Name + "\n")
			below(s.SpanContext.SpanID(), depth+1)
		}
	}
	below(trace.SpanID{}, 0)
	return b.String()
}

func spanOf(t *testing.T, spans tracetest.SpanStubs, name, role string) map[attribute.Key]string {
	t.Helper()
	for _, s := range spans {
		attributes := map[attribute.Key]string{}
		for _, kv := range s.Attributes {
			attributes[kv.Key] = kv.Value.Emit()
		}
		if s.Name == name && attributes[telemetry.Role] == role {
			return attributes
		}
	}
	t.Fatalf("no span %s", name)
	return nil
}

func TestRunIsOneTrace(t *testing.T) {
	spans, log := traced(t, "helper", protocol.Input{Kind: protocol.InputMessage, Content: json.RawMessage(`{"role":"user","parts":[{"text":"hash ` + secret + `"}]}`)}, nil, false)
	call := ""
	for _, ev := range log {
		if ev.Turn != nil && len(ev.Turn.Calls) > 0 {
			call = ev.Turn.Calls[0].ID
		}
	}
	want := `internal invoke_agent helper
  client generate_content scripted
  internal execute_tool hash
    producer send toolfabric.call.{tool}
      consumer process toolfabric.call.{tool}
        internal execute_tool hash
  client generate_content scripted
`
	if got := tree(spans); got != want {
		t.Errorf("the trace is\n%s\nwant\n%s", got, want)
	}
	for _, s := range spans {
		if s.SpanContext.TraceID() != spans[0].SpanContext.TraceID() {
			t.Errorf("%s is in another trace", s.Name)
		}
		for _, kv := range s.Attributes {
			if strings.Contains(kv.Value.Emit(), secret) {
				t.Errorf("%s tells %s", s.Name, kv.Key)
			}
		}
	}
	for _, c := range []struct {
		name, role string
		want       map[attribute.Key]string
	}{
		{"invoke_agent helper", "", map[attribute.Key]string{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper", "gen_ai.conversation.id": "s1", "toolfabric.turn.outcome": "done"}},
		{"generate_content scripted", "", map[attribute.Key]string{
			"gen_ai.operation.name": "generate_content", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "scripted", "gen_ai.response.finish_reasons": `["STOP"]`}},
		{"execute_tool hash", "dispatch", map[attribute.Key]string{
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hash", "gen_ai.tool.type": "function", "gen_ai.tool.call.id": call,
			"gen_ai.conversation.id": "s1", "toolfabric.outcome": "completed"}},
		{"send toolfabric.call.{tool}", "", map[attribute.Key]string{
			"messaging.system": "nats", "messaging.destination.template": "toolfabric.call.{tool}", "messaging.destination.name": "tf.call.hash",
			"messaging.operation.name": "send", "messaging.operation.type": "send", "messaging.message.id": call}},
		{"process toolfabric.call.{tool}", "", map[attribute.Key]string{
			"messaging.system": "nats", "messaging.operation.name": "process", "messaging.message.id": call, "toolfabric.attempt": "1"}},
		{"execute_tool hash", "", map[attribute.Key]string{
			"gen_ai.tool.name": "hash", "gen_ai.tool.call.id": call, "toolfabric.worker": "w1", "toolfabric.outcome": "completed"}},
	} {
		got := spanOf(t, spans, c.name, c.role)
		for key, want := range c.want {
			if got[key] != want {
				t.Errorf("%s %s: %s = %q, want %q", c.name, c.role, key, got[key], want)
			}
		}
	}
}

func TestRunStaysInItsTraceThroughAPark(t *testing.T) {
	spans, _ := traced(t, "helper", protocol.Input{Kind: protocol.InputMessage, Content: json.RawMessage(`{"role":"user","parts":[{"text":"hash it"}]}`)}, nil, true)
	want := `internal invoke_agent helper
  client generate_content scripted
  internal invoke_agent helper
    internal execute_tool hash
      producer send toolfabric.call.{tool}
        consumer process toolfabric.call.{tool}
          internal execute_tool hash
    client generate_content scripted
`
	if got := tree(spans); got != want {
		t.Errorf("the trace is\n%s\nwant\n%s", got, want)
	}
}

func TestTraceOfAClientsCallGoesOnFromItsSender(t *testing.T) {
	const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	spans, _ := traced(t, protocol.CallsApp, protocol.Input{Kind: protocol.InputCall, Call: &protocol.ClientCall{Tool: "hash", Args: json.RawMessage(`{"word":"` + secret + `"}`)}},
		natswire.Header{natswire.HeaderTraceparent: sender}, false)
	parent, _ := telemetry.ParseTraceparent(sender)
	for i, s := range spans { // the sender's span is not ours to show
		if s.SpanContext.TraceID() != parent.TraceID() {
			t.Errorf("%s is in another trace", s.Name)
		}
		if s.Parent.SpanID() == parent.SpanID() {
			spans[i].Parent = trace.SpanContext{}
		}
	}
	want := `internal invoke_agent calls
  internal execute_tool hash
    producer send toolfabric.call.{tool}
      consumer process toolfabric.call.{tool}
        internal execute_tool hash
`
	if got := tree(spans); got != want {
		t.Errorf("the trace is\n%s\nwant\n%s", got, want)
	}
}

func TestFailedRunSaysSoOnItsRoot(t *testing.T) {
	spans, log := traced(t, "helper", protocol.Input{Kind: protocol.InputMessage, Content: json.RawMessage(`{"role":"user","parts":[{"text":"of nothing that the script knows"}]}`)}, nil, false)
	problem := log[len(log)-1].Stop.Problem
	if problem == nil {
		t.Fatal("the run did not fail")
	}
	if got := spanOf(t, spans, "invoke_agent helper", "")["error.type"]; got != string(problem.Code) {
		t.Errorf("error.type = %q, want %q", got, problem.Code)
	}
}
