package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

func (a *app) parkedShow(ctx context.Context, id string) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	p, err := l.client.FindParked(ctx, id)
	if err != nil {
		return err
	}
	return a.print(p, func() error { return a.writeParked(&p) })
}

// writeParked prints what waits so that a person can decide about it: what others wrote is escaped also when it goes
// to a file, and what an asker says stands apart from what would run.
func (a *app) writeParked(p *client.Parked) error {
	out := a.out
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name, term.Reveal(value))
		}
	}
	row("call", p.Call)
	row("tool", p.Tool+", "+string(p.Effect))
	row("session", p.Session+" of "+p.App+", user "+cmp.Or(p.User, "unknown"))
	if p.Agent != p.App {
		row("agent", p.Agent)
	}
	row("waits for", waitsFor(p)+", "+waited(p))
	if q := p.Confirmation; q != nil {
		row("asked by", askedBy(q.Origin))
		row("decides", decides(p))
		row("digest", q.Digest)
	}
	would := ""
	if p.Confirmation != nil {
		would = ", exactly what would run"
	}
	fmt.Fprintf(&b, "\narguments, %d bytes%s\n%s\n", len(p.Args), would, jsonText(p.Args))
	for _, note := range term.Suspicions(string(p.Args)) {
		fmt.Fprintf(&b, "%s %s\n", out.Paint(term.Yellow, "!"), note)
	}
	if q := p.Confirmation; q != nil {
		if text := hint(p); text != "" {
			fmt.Fprintf(&b, "\nthe asker says\n%s\n", term.Reveal(text))
		}
		switch {
		case len(q.Payload) > 0 && partOf(q.Payload, p.Args):
			b.WriteString("\nthe asker wants an answer of requested_schema, above, as --payload\n")
		case len(q.Payload) > 0:
			fmt.Fprintf(&b, "\nthe asker shows, or wants filled in as --payload\n%s\n", jsonText(q.Payload))
		}
		if !p.Verified() {
			fmt.Fprintf(&b, "\n%s the digest is not that of these arguments: do not agree to them\n", out.Paint(term.Red, "!"))
		}
	}
	fmt.Fprintf(&b, "\n%s", a.nextFor(p))
	_, err := io.WriteString(out, b.String())
	return err
}

// waitsFor says in a word or two what a call waits for.
func waitsFor(p *client.Parked) string {
	if p.WithPool() {
		return "its workers"
	}
	return p.Waits()
}

func waited(p *client.Parked) string {
	text := "since " + ago(time.UnixMilli(p.Since))
	if p.Until > 0 {
		text += ", until " + time.UnixMilli(p.Until).Local().Format(time.DateTime) + " (" + until(p.Until) + ")"
	}
	return text
}

func askedBy(origin string) string {
	switch origin {
	case protocol.OriginFlag:
		return "the tool's declaration"
	case protocol.OriginProvider:
		return "the tool, because of the arguments"
	case protocol.OriginTool:
		return "the tool, while it ran"
	case protocol.OriginCallback:
		return "a callback of the agent"
	default:
		return "the policy " + origin
	}
}

// hint is what the asker says to a person.
func hint(p *client.Parked) string { return worded(p.Confirmation.Hint, p.Tool) }

// worded leaves out ADK's text of a tool that words no question: it only says how a program answers.
func worded(hint, tool string) string {
	return strings.TrimSpace(strings.Replace(hint, toolconfirmation.Hint(tool), "", 1))
}

// partOf reports whether an MCP server's question stands in the arguments, as that of an older server does.
func partOf(payload, args json.RawMessage) bool {
	var shown, asked mcptoolset.Shown
	return json.Unmarshal(payload, &shown) == nil && json.Unmarshal(args, &asked) == nil && len(shown.Schema) > 0 &&
		shown.Server == asked.Server && shown.Message == asked.Message && shown.URL == asked.URL && bytes.Equal(compacted(shown.Schema), compacted(asked.Schema))
}

func compacted(raw json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // of a message that was decoded
	return b.Bytes()
}

// decides says whose word counts.
func decides(p *client.Parked) string {
	q := p.Confirmation
	text := "anyone who may publish on the subject below"
	if q.NotRequester {
		text += ", but not " + cmp.Or(p.User, "the requester") + ", whose session it is"
	}
	if q.Quorum() > 1 {
		text += fmt.Sprintf("; %d must agree, one is enough to deny", q.Quorum())
	}
	if len(p.Approvers) > 0 {
		text += "; so far " + strings.Join(p.Approvers, ", ")
	}
	if q.ToolDecides {
		text += "; the tool is told either way"
	}
	return text
}

// nextFor is the commands that end a wait.
func (a *app) nextFor(p *client.Parked) string {
	call := term.EscapeLine(p.Call)
	lines := func(all ...string) string { return "  " + strings.Join(all, "\n  ") + "\n" }
	if q := p.Confirmation; q != nil {
		deny := a.line("approvals deny %s", call)
		if !p.Verified() {
			return lines(deny)
		}
		bound := ""
		if len(q.Digest) >= 2*minDigest {
			bound = " --digest " + term.EscapeLine(q.Digest[:2*minDigest])
		}
		if wantsPayload(q) {
			bound += " --payload JSON"
		}
		return lines(a.line("approvals approve %s%s", call, bound), deny,
			a.natsLine(`pub %s '{"confirmed":true}'`, strings.TrimSuffix(term.EscapeLine(p.Reply), "*")+"local"))
	}
	if p.WithPool() {
		return lines(a.line("pools show %s", term.EscapeLine(p.Tool)), a.line("calls cancel %s", call))
	}
	return lines(a.line("calls complete %s --result JSON", call),
		a.natsLine(`pub %s '{"v":%d,"outcome":"completed","value":{}}'`, term.EscapeLine(p.Reply), protocol.Version))
}

// wantsPayload reports whether a question shows the schema of what is to be said with a yes, as those of MCP servers do.
func wantsPayload(q *protocol.Confirmation) bool {
	var shown mcptoolset.Shown
	return json.Unmarshal(q.Payload, &shown) == nil && len(shown.Schema) > 0
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
