package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// writeConversation prints events as a person reads a conversation.
func writeConversation(out term.Screen, s client.Session, events []*session.Event) error {
	c := conversation{out: out, asked: map[string]string{}}
	fmt.Fprintf(&c.text, "%s\n", out.Paint(term.Dim, term.EscapeLine("session "+s.ID+" of "+s.App+", "+s.State)))
	for _, ev := range events {
		if ev.ErrorCode != "" {
			fmt.Fprintf(&c.text, "\n%s %s\n", out.Paint(term.Red, "failed:"), out.Text(ev.ErrorMessage))
		}
		if ev.Content == nil {
			continue
		}
		for _, part := range ev.Content.Parts {
			c.part(ev, part)
		}
	}
	_, err := io.WriteString(out, c.text.String())
	return err
}

type conversation struct {
	out   term.Screen
	text  strings.Builder
	asked map[string]string // tool that a question is about, by confirmation
}

func (c *conversation) part(ev *session.Event, part *genai.Part) {
	who := term.EscapeLine(cmp.Or(ev.Author, "call"))
	switch {
	case part == nil || part.Thought:
	case part.FunctionCall != nil && part.FunctionCall.Name == toolconfirmation.FunctionCallName:
		c.question(part.FunctionCall)
	case part.FunctionCall != nil:
		c.line(term.Cyan, ">", part.FunctionCall.Name, jsonLine(part.FunctionCall.Args))
	case part.FunctionResponse != nil && part.FunctionResponse.Name == toolconfirmation.FunctionCallName:
		c.decision(ev, part.FunctionResponse)
	case part.FunctionResponse != nil:
		ids, _ := ev.CustomMetadata[session.MetadataPlaceholders].([]string)
		if !slices.Contains(ids, part.FunctionResponse.ID) { // else the question follows
			c.line(term.Green, "<", part.FunctionResponse.Name, jsonLine(part.FunctionResponse.Response))
		}
	case part.Text != "":
		fmt.Fprintf(&c.text, "\n%s %s\n", c.out.Paint(term.Yellow, who+":"), strings.TrimSuffix(c.out.Text(part.Text), "\n"))
	default:
		fmt.Fprintf(&c.text, "\n%s (other content)\n", c.out.Paint(term.Yellow, who+":"))
	}
}

// line is one that stands in a turn. what is on one line already.
func (c *conversation) line(color, mark, tool, what string) {
	fmt.Fprintf(&c.text, "  %s %s %s\n", c.out.Paint(color, mark), term.EscapeLine(tool), what)
}

// question is a call that people are asked about.
func (c *conversation) question(call *genai.FunctionCall) {
	of, _ := call.Args["originalFunctionCall"].(*genai.FunctionCall)
	asks, _ := call.Args["toolConfirmation"].(toolconfirmation.ToolConfirmation)
	if of == nil {
		return
	}
	c.asked[call.ID] = of.Name
	what := "waits for a decision"
	if text := worded(asks.Hint, of.Name); text != "" {
		what += ": " + term.EscapeLine(term.Clip(text, 160))
	}
	c.line(term.Yellow, "?", of.Name, what)
}

// decision is what somebody said to a question.
func (c *conversation) decision(ev *session.Event, r *genai.FunctionResponse) {
	said := "denied"
	if yes, _ := r.Response["confirmed"].(bool); yes {
		said = "approved"
	}
	if r.Response["args"] != nil {
		said = "edited to " + jsonLine(r.Response["args"])
	}
	if by, _ := ev.CustomMetadata[session.MetadataApprover].(string); by != "" {
		said += " by " + term.EscapeLine(by)
	}
	if remark, _ := r.Response["hint"].(string); remark != "" {
		said += ": " + term.EscapeLine(term.Clip(remark, 160))
	}
	c.line(term.Yellow, "!", c.asked[r.ID], said)
}
