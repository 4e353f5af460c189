package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// The vectors are black-box cases of ADK's behaviour, V1 to V21, V24, V26 and V27, on the public API. Where ours differs from
// ADK's on purpose the case says so.
//
// The event stream is compared in a short notation, a line for each event: its author, then T(text), FC(call), FR(response),
// W(question) and D(decision) for its parts, and what else it carries.

// wantStream compares what people see of a session.
func (f *fabric) wantStream(app, id string, want ...string) {
	f.t.Helper()
	events, err := f.client.Events(f.t.Context(), app, id)
	if err != nil {
		f.t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, f.line(e))
	}
	if d := cmp.Diff(want, got); d != "" {
		f.t.Errorf("events (-want +got):\n%s", d)
	}
}

func (f *fabric) line(e *session.Event) string {
	f.t.Helper()
	var b strings.Builder
	b.WriteString(e.Author + ":")
	if e.Content != nil {
		for _, p := range e.Content.Parts {
			b.WriteString(" " + f.part(p))
		}
	}
	if n := len(e.LongRunningToolIDs); n > 0 {
		fmt.Fprintf(&b, " long:%d", n)
	}
	if n := len(e.Actions.RequestedToolConfirmations); n > 0 {
		fmt.Fprintf(&b, " asks:%d", n)
	}
	if e.Actions.SkipSummarization {
		b.WriteString(" skip")
	}
	if e.Actions.Escalate {
		b.WriteString(" escalate")
	}
	if to := e.Actions.TransferToAgent; to != "" {
		b.WriteString(" transfer:" + to)
	}
	if d := e.Actions.StateDelta; len(d) > 0 {
		b.WriteString(" delta:" + f.json(d))
	}
	if e.ErrorCode != "" {
		b.WriteString(" problem:" + e.ErrorCode)
	}
	return b.String()
}

func (f *fabric) part(p *genai.Part) string {
	f.t.Helper()
	switch c, r := p.FunctionCall, p.FunctionResponse; {
	case c != nil && c.Name == toolconfirmation.FunctionCallName:
		original, err := toolconfirmation.OriginalCallFrom(c)
		if err != nil {
			f.t.Fatal(err)
		}
		asked, ok := c.Args["toolConfirmation"].(toolconfirmation.ToolConfirmation)
		if !ok || asked.Confirmed {
			f.t.Errorf("a question holds %v", c.Args["toolConfirmation"])
		}
		text := original.Name
		if asked.Hint != toolconfirmation.Hint(original.Name) {
			text += ", " + asked.Hint
		}
		if asked.Payload != nil {
			text += ", " + f.json(asked.Payload)
		}
		return "W(" + text + ")"
	case c != nil:
		return "FC(" + c.Name + ")"
	case r != nil && r.Name == toolconfirmation.FunctionCallName:
		return "D(" + f.json(r.Response) + ")"
	case r != nil:
		return "FR(" + r.Name + ": " + f.json(r.Response) + ")"
	}
	return "T(" + p.Text + ")"
}

func (f *fabric) json(v any) string {
	f.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// asks is the placeholder that people see while they are asked, in the notation.
func asks(name string) string {
	return `FR(` + name + `: {"error":"error tool \"` + name + `\" requires confirmation, please approve or reject"})`
}

// rejected is how a call ends that people said no to, in the notation.
func rejected(name string) string {
	return `FR(` + name + `: {"error":"error tool \"` + name + `\" call is rejected"})`
}

// mapped makes a tool of a function from and to maps.
func mapped(t *testing.T, cfg functiontool.Config, run functiontool.Func[map[string]any, map[string]any]) tool.Tool {
	t.Helper()
	cfg.Description = "The tool " + cfg.Name + "."
	tl, err := functiontool.New(cfg, run)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}
