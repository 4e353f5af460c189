package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// waits tells what a run waits for, with the commands that end the wait.
func (p *printer) waits(w *client.Waiting) {
	if w.Queued {
		p.talk("%s the message is queued: the session waits, and takes it up afterwards", p.a.err.Paint(term.Yellow, "…"))
	}
	for i := range w.Calls {
		p.waitsFor(&w.Calls[i])
		p.a.say("%s", strings.TrimSuffix(p.a.nextFor(&w.Calls[i]), "\n"))
	}
}

// waitsFor tells of one call.
func (p *printer) waitsFor(c *client.Parked) {
	what := "its result"
	switch {
	case c.Confirmation != nil:
		what = "a decision"
	case c.WithPool():
		what = "its workers"
	}
	p.talk("%s %s waits for %s %s", p.a.err.Paint(term.Yellow, "?"), term.EscapeLine(c.Tool), what, p.a.err.Paint(term.Dim, "call "+term.EscapeLine(c.Call)))
}

// asks tells of a call that runs and waits for the answer to another one, and how to give it.
func (p *printer) asks(open *running, u *client.Progress) {
	if protocol.CheckID(u.Asks) != nil {
		return
	}
	again := ""
	if open.asks == u.Asks {
		again = " again"
	}
	open.told, open.worker, open.asks = time.Now(), u.Worker, u.Asks
	p.talk("%s %s waits%s: %s %s", p.a.err.Paint(term.Yellow, "?"), term.EscapeLine(open.call.Tool), again, term.EscapeLine(term.Clip(u.Message, 200)), p.a.err.Paint(term.Dim, "call "+u.Asks))
	p.a.say("  %s", p.a.line("approvals show %s", u.Asks))
}

// decidedElsewhere drops the question that is open here when the log has its answer.
func (p *printer) decidedElsewhere(in *protocol.FoldedInput) {
	if p.asker == nil || in.Decision == nil || in.Refused != nil || !p.asker.asks(in.Decision.Confirmation) {
		return
	}
	p.a.say("") // below the prompt
	p.talk("%s %s has decided", p.a.err.Paint(term.Dim, "…"), term.EscapeLine(in.Client))
	p.asker.forget()
}

// waitingElsewhere says how to come back to a run that goes on without this command.
func (a *app) waitingElsewhere(session string) {
	a.say("it goes on by itself then; see it with: %s", a.line("sessions show %s", session))
}

// question is a call as a person at the terminal is asked about it: all of it, as show prints it.
func (p *printer) question(c *client.Parked) {
	p.waitsFor(c)
	fmt.Fprintf(p.a.err.Writer, "%s\n", jsonText(c.Args))
	for _, note := range term.Suspicions(string(c.Args)) {
		p.a.say("%s %s", p.a.err.Paint(term.Yellow, "!"), note)
	}
	q := c.Confirmation
	if text := hint(c); text != "" {
		p.a.say("%s asks: %s", askedBy(q.Origin), term.Reveal(text))
	}
	if len(q.Payload) > 0 {
		p.a.say("and shows: %s", term.Reveal(string(q.Payload)))
	}
}
