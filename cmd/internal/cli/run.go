package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// maxMessage is the size limit of a message in bytes; the input it travels in stays below the broker's own.
const maxMessage = 512 << 10

// runOptions are the flags of run.
type runOptions struct {
	agent, session, id string
	stream             bool
	wait               bool
}

func (a *app) runCmd() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run --agent AGENT TEXT", Short: "Say something to an agent and see its answer", Args: cobra.ExactArgs(1),
		Long: `Run sends a message, shows what the agent does and prints its answer. The run belongs to the coordinators: it goes on when
this command is interrupted. The session's id is on stderr; --session continues that session, also after every process was
restarted. On a terminal the answer appears as it comes; elsewhere it is written when it is whole, unless --stream is given.
TEXT is read from stdin for "-".

A run may come to wait for a person to approve a call, or for a result from outside. On a terminal run asks: y, n, edit or
later. Elsewhere it prints what it waits for and how to answer, and exits with 0 and an empty stdout: the run has not failed
and goes on by itself. With --wait it stays until the answer is there.`,
		Example: `  toolfabric run --agent helper "How many words has README.md?"
  toolfabric run --session 7qk3zv2m5h6x "And how many lines?"
  git diff | toolfabric run --agent reviewer -
  toolfabric run --agent writer --stream "Tell a story" | tee story.txt
  toolfabric run --agent clerk --wait "Transfer 5 to Bob"            stays until somebody has approved it and it is answered
  toolfabric run --agent clerk --id mail-4711 "Transfer 5 to Bob"    again with this id: says it no second time, shows the answer
  toolfabric run --agent helper --output json "Hello" | jq 'select(.event).event.author'`,
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the agent's `NAME`; a session that is continued knows its own")
	f.StringVar(&o.session, "session", "", "continue the session with this `ID`")
	f.StringVar(&o.id, "id", "", "name the message: sending it again with the same `ID` is the same message")
	f.BoolVar(&o.wait, "wait", false, "stay also while the run waits for a person or for a result from outside")
	f.BoolVar(&o.stream, "stream", false, "write the answer as it comes also when stdout is no terminal")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.run(ctx, o, args[0]) })
	return cmd
}

func (a *app) run(ctx context.Context, o runOptions, text string) error {
	if o.agent == "" && o.session == "" {
		return protocol.Errorf(protocol.CodeUsage, "which agent? name one with --agent; toolfabric agents ls lists them")
	}
	if text == "-" {
		all, err := io.ReadAll(io.LimitReader(a.in, maxMessage+1))
		if err != nil {
			return protocol.Wrap(err, protocol.CodeUsage, "the message cannot be read from stdin")
		}
		text = string(all)
	}
	if strings.TrimSpace(text) == "" || len(text) > maxMessage {
		return protocol.Errorf(protocol.CodeUsage, "a message has 1 to %d bytes, this one has %d", maxMessage, len(text))
	}
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if o.session != "" {
		if o.agent, err = continued(ctx, l.client, o); err != nil {
			return err
		}
	}
	o.id = cmp.Or(o.id, protocol.NewID())
	o.session = cmp.Or(o.session, o.id) // as Send would name a new one
	err = a.showRun(ctx, l.client, o, text)
	if protocol.CodeOf(err) == protocol.CodeUnknownApp {
		return unserved(ctx, l, o.agent, err)
	}
	return err
}

// unserved adds to the error about an agent that nobody has ever served the ones that somebody has, the closest first.
func unserved(ctx context.Context, l *link, agent string, err error) error {
	apps, nerr := l.conn.Durables(ctx, l.conn.Names().Input())
	if nerr != nil {
		return err // these credentials may not ask
	}
	apps = slices.DeleteFunc(apps, func(app string) bool { return app == protocol.CallsApp })
	if len(apps) == 0 {
		return err
	}
	message := protocol.ProblemOf(err).Message
	if meant := protocol.Meant(agent, apps); meant != "" {
		message += "\n  did you mean " + meant + "?"
	}
	const most = 10
	near := protocol.Closest(agent, apps)
	list := strings.Join(near[:min(len(near), most)], ", ")
	if more := len(near) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return protocol.Errorf(protocol.CodeUnknownApp, "%s\n  served so far: %s", message, list)
}

// continued checks that a session is there and returns its agent.
func continued(ctx context.Context, c *client.Client, o runOptions) (agent string, err error) {
	s, err := c.Find(ctx, o.session)
	if err != nil {
		return "", err
	}
	if o.agent != "" && o.agent != s.App {
		return "", protocol.Errorf(protocol.CodeUsage, "session %s belongs to agent %s, not to %s; leave --agent out", o.session, s.App, o.agent)
	}
	return s.App, nil
}

// showRun says text to the session and shows what comes of it.
func (a *app) showRun(ctx context.Context, c *client.Client, o runOptions, text string) error {
	p := newPrinter(a)
	p.json = a.set.Output == "json"
	p.stream = !p.json && (o.stream || a.out.TTY)
	p.wait = o.wait
	receipt := client.Receipt{App: o.agent, Session: o.session, InputID: o.id}
	out, err := p.follow(ctx, c, receipt, func(ctx context.Context, stored func(client.Receipt)) iter.Seq2[client.Update, error] {
		return c.Ask(ctx, o.agent, o.session, client.Text(text), stored, client.WithInputID(o.id))
	})
	if p.stored && ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		p.talk("detached: the run goes on; see it with: %s\ncontinue with: %s", a.line("sessions show %s", receipt.Session), a.line("run --session %s TEXT", receipt.Session))
		return errDetached
	}
	if err != nil {
		return err
	}
	switch {
	case p.json:
		err = a.printLine(map[string]any{"outcome": out})
	case !p.stream && out.Text != "":
		_, err = fmt.Fprintln(a.out, strings.TrimSuffix(a.out.Text(out.Text), "\n"))
	}
	for _, result := range out.Results {
		if p.json || err != nil {
			break
		}
		_, err = fmt.Fprintln(a.out, a.out.Text(string(bare(result.Value))))
	}
	if err != nil {
		return err
	}
	if out.Waiting != nil {
		a.waitingElsewhere(receipt.Session)
		return nil
	}
	if out.Problem != nil {
		return &failure{code: string(out.Problem.Code), message: "the run of session " + receipt.Session + " failed: " + out.Problem.Message}
	}
	return nil
}
