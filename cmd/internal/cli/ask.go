package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// asker asks the person at the terminal about the calls of a run, one after another.
type asker struct {
	p       *printer
	lines   chan string // what the person typed; closed at the end of input
	queue   []client.Parked
	open    *client.Parked // what is asked about; nil is nothing
	editing bool           // the next line is arguments
	others  []client.Parked
}

const choices = "run it? y = yes, n = no, e = edit the arguments, l = decide later: "

// begin takes up the calls that a run waits for. It reports whether there is anything to ask here.
func (q *asker) begin(ctx context.Context, w *client.Waiting) bool {
	asked := false // what is asked already stays asked
	q.queue, q.others = nil, nil
	for _, c := range w.Calls {
		switch {
		case c.Confirmation == nil || c.Confirmation.NotRequester:
			q.others = append(q.others, c)
		case q.asks(c.Confirmation.ID):
			asked = true
		default:
			q.queue = append(q.queue, c)
		}
	}
	for i := range q.others {
		q.p.waitsFor(&q.others[i])
		q.p.a.say("%s", strings.TrimSuffix(q.p.a.nextFor(&q.others[i]), "\n"))
	}
	if asked {
		return true
	}
	q.forget()
	if len(q.queue) == 0 {
		return false
	}
	if q.lines == nil {
		q.lines = make(chan string)
		go readLines(ctx, q.p.a.in, q.lines) // a read of a terminal cannot be ended: it ends with the process
	}
	q.next()
	return true
}

func readLines(ctx context.Context, r io.Reader, lines chan<- string) {
	defer close(lines)
	in := bufio.NewScanner(r)
	in.Buffer(nil, protocol.ArgsLimits.Size)
	for in.Scan() {
		select {
		case lines <- in.Text():
		case <-ctx.Done():
			return
		}
	}
}

// next asks about the next call.
func (q *asker) next() {
	if q.forget(); len(q.queue) == 0 {
		return
	}
	q.open, q.queue = &q.queue[0], q.queue[1:]
	q.p.question(q.open)
	q.prompt(choices)
}

func (q *asker) prompt(text string) { fmt.Fprint(q.p.a.err.Writer, text) }

func (q *asker) asks(confirmation string) bool {
	return q.open != nil && q.open.Confirmation.ID == confirmation
}

func (q *asker) forget() { q.open, q.editing = nil, false }

// answer takes a line. It reports that the person wants to decide later.
func (q *asker) answer(ctx context.Context, c *client.Client, line string) (later bool, err error) {
	line = strings.TrimSpace(line)
	if q.open == nil {
		return false, nil
	}
	if q.editing {
		return false, q.edit(ctx, c, line)
	}
	switch strings.ToLower(line) {
	case "y", "yes":
		return false, q.decide(ctx, c, protocol.Decision{Confirmed: true})
	case "n", "no":
		return false, q.decide(ctx, c, protocol.Decision{})
	case "e", "edit":
		q.editing = true
		q.prompt("the arguments as one line of JSON, empty to leave them: ")
	case "l", "later":
		return true, nil
	default:
		q.prompt(choices)
	}
	return false, nil
}

// edit asks again, with other arguments.
func (q *asker) edit(ctx context.Context, c *client.Client, line string) error {
	q.editing = false
	if line == "" {
		q.prompt(choices)
		return nil
	}
	err := protocol.Check([]byte(line), protocol.ArgsLimits)
	if err == nil && line[0] != '{' {
		err = protocol.Errorf(protocol.CodeUsage, "arguments are a JSON object")
	}
	if err != nil {
		q.p.a.say("%s", term.EscapeLine(protocol.ProblemOf(err).Message))
		q.prompt(choices)
		return nil
	}
	return q.decide(ctx, c, protocol.Decision{Confirmed: true, Args: json.RawMessage(line)})
}

// decide sends a decision and tells its receipt. Whatever it says, the run's log is what counts.
func (q *asker) decide(ctx context.Context, c *client.Client, d protocol.Decision) error {
	call := *q.open
	q.forget()
	r, err := c.Decide(ctx, call, d, "")
	switch {
	case errors.Is(err, client.ErrNoReceipt):
		q.p.talk("%s %s", q.p.a.err.Paint(term.Yellow, "!"), protocol.ProblemOf(err).Message)
	case err != nil:
		return err
	case r.Code != "":
		q.p.talk("%s it does not count: %s", q.p.a.err.Paint(term.Red, "!"), term.EscapeLine(r.Message))
	case len(d.Args) > 0:
		edited, err := c.ParkedCall(ctx, call.App, call.Session, call.Call)
		if err == nil && edited.Confirmation != nil && edited.Confirmation.ID != call.Confirmation.ID {
			q.queue = append([]client.Parked{edited}, q.queue...) // else the run's next park tells of it
		}
	}
	q.next()
	return nil
}
