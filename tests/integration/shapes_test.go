package integration

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// shape is one entry of the case: a tool and what the model must read of its result.
type shape struct {
	kind    string
	tool    tool.Tool
	want    string // the whole response; empty is looked at by holds
	holds   []string
	outcome protocol.Outcome
}

func typed[R any](t *testing.T, name string, result R, err error) tool.Tool {
	t.Helper()
	tl, failed := functiontool.New(functiontool.Config{Name: name, Description: "Answers."}, func(tool.Context, struct{}) (R, error) { return result, err })
	if failed != nil {
		t.Fatal(failed)
	}
	return tl
}

func shapes(t *testing.T) []shape {
	t.Helper()
	var entries []struct {
		Kind, Raw, Hex, Error, Go string
		JSON                      json.RawMessage
	}
	if err := json.Unmarshal(hand(t, "h12-result-shapes/results.json"), &entries); err != nil {
		t.Fatal(err)
	}
	wrapped := map[string]string{
		"array": `{"result":[1,2]}`, "bool": `{"result":true}`, "null": `{"result":null}`, "empty object": `{"result":{}}`, "string": `{"result":""}`,
		"own keys output and error": `{"result":{"output":1,"error":"none","rest":2}}`,
	}
	var all []shape
	for i, e := range entries {
		name := fmt.Sprintf("shape_%d", i)
		s := shape{kind: e.Kind, outcome: protocol.OutcomeCompleted}
		switch {
		case e.Kind == "go error":
			s.tool, s.want, s.outcome = typed[any](t, name, nil, errors.New(e.Error)), `{"error":"disk full"}`, protocol.OutcomeFailed
		case e.Kind == "go NaN":
			s.tool, s.outcome = typed(t, name, map[string]any{"x": math.NaN()}, nil), protocol.OutcomeFailed
			s.holds = []string{`"error"`, "x", "NaN"}
		case e.Kind == "go structs":
			s.tool = typed(t, name, []struct {
				ID int `json:"id"`
			}{{1}}, nil)
			s.want = `{"result":[{"id":1}]}`
		case e.Kind == "go time":
			s.tool, s.want = typed(t, name, time.Unix(0, 0).UTC(), nil), `{"result":"1970-01-01T00:00:00Z"}`
		case e.Kind == "go nil slice":
			s.tool = typed(t, name, struct {
				Items []string `json:"items"`
			}{}, nil)
			s.want = `{"items":[]}`
		case e.Hex != "":
			b, err := hex.DecodeString(e.Hex)
			if err != nil {
				t.Fatal(err)
			}
			s.tool, s.want = typed[any](t, name, b, nil), `{"result":"data:application/octet-stream;base64,aP/+AA=="}`
		case e.Raw != "":
			s.tool, s.want = answering(name, e.Raw, tool.AtMostOnce), `{"result":"a\ufffd b"}`
		default:
			if len(e.JSON) == 0 {
				e.JSON = json.RawMessage("null")
			}
			s.tool, s.want = answering(name, string(e.JSON), tool.AtMostOnce), wrapped[e.Kind]
		}
		if s.want == "" && s.holds == nil {
			t.Fatalf("nobody says what is expected of %q", e.Kind)
		}
		all = append(all, s)
	}
	return all
}

func TestEveryResultReachesTheModel(t *testing.T) { // h12
	t.Parallel()
	all := shapes(t)
	var script strings.Builder
	names := make([]string, len(all))
	tools := make([]tool.Tool, len(all))
	script.WriteString("turns:\n")
	for i, s := range all {
		tools[i], names[i] = s.tool, s.tool.Name()
		fmt.Fprintf(&script, "  - {parts: [{functionCall: {name: %s, id: c%d}}], finishReason: STOP}\n", s.tool.Name(), i)
	}
	script.WriteString("  - {parts: [{text: done}], finishReason: STOP}\n")
	f := newFabric(t)
	p := provide(t, []byte(script.String()), nil)
	f.coordinate(newAgent(t, "h12", p.llm, names...))
	f.work(tools...)
	out := f.ask("h12", "", "go")
	if out.Problem != nil {
		t.Fatalf("the run failed: %+v", out.Problem)
	}
	contains(t, "the answer", out.Text, "done")
	p.wantCount(len(all) + 1)
	log := f.log("h12", out.Session)
	byCall := map[string]protocol.Answer{}
	for _, a := range answers(log) {
		byCall[a.Call] = a
	}
	for i, s := range all {
		t.Run(s.kind, func(t *testing.T) {
			body := p.Requests()[i+1].Body
			if len(body) == 0 || !utf8.Valid(body) || bytes.Contains(bytes.ToLower(body), []byte(`\ud83d`)) {
				t.Errorf("the request is no valid UTF-8 JSON: %q", body)
			}
			got, err := json.Marshal(p.response(i+2, 0))
			if err != nil {
				t.Fatal(err)
			}
			if s.want != "" {
				wantJSON(t, "the response", string(got), s.want)
			}
			for _, h := range s.holds {
				contains(t, "the response", string(got), h)
			}
			if a := byCall[turns(log)[i].Calls[0].ID]; a.Outcome != s.outcome {
				t.Errorf("the call counts as %s, want %s", a.Outcome, s.outcome)
			}
		})
	}
}
