package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

func (a *app) callCmd() *cobra.Command {
	var args, id string
	var wait bool
	cmd := &cobra.Command{
		Use: "call TOOL", Short: "Make one durable call, without a model",
		Args: func(cmd *cobra.Command, pos []string) error {
			if len(pos) == 0 {
				return errors.New("which tool? name one: toolfabric call TOOL; toolfabric tools lists them")
			}
			return cobra.ExactArgs(1)(cmd, pos)
		},
		Long: `Call asks a tool's pool for one execution and waits for its answer, which it prints as JSON. The call outlives this
command, the worker that runs it and the coordinator. Arguments are JSON, @FILE or - for stdin.

A call that needs a person's word, or a result from outside, waits. On a terminal the person there is asked: y, n, edit or
later. Elsewhere call prints what it waits for and how to answer, and exits with 0 and an empty stdout: the call has not failed.
With --wait it stays until the answer is there; the same --id later fetches it.`,
		Example: `  toolfabric call word_count --args '{"text":"a b c"}'
  toolfabric call word_count --args @args.json
  echo '{"text":"a"}' | toolfabric call word_count --args -
  toolfabric call pay --args @bill.json --id bill-4711           again with this id: does not pay again, prints what came of it
  toolfabric call pay --args @bill.json --id bill-4711 --wait    stays until somebody has approved it and it is done`,
	}
	cmd.Flags().StringVar(&args, "args", "{}", "the arguments: a JSON object, @FILE or -")
	cmd.Flags().StringVar(&id, "id", "", "name the call: asking again with the same `ID` does not call again")
	cmd.Flags().BoolVar(&wait, "wait", false, "stay also while the call waits for a person or for a result from outside")
	cmd.RunE = a.do(func(ctx context.Context, pos []string) error { return a.call(ctx, pos[0], args, id, wait) })
	return cmd
}

func (a *app) call(ctx context.Context, tool, args, id string, wait bool) error {
	if err := protocol.CheckName(tool); err != nil {
		return err
	}
	raw, err := a.readArgs(args)
	if err != nil {
		return err
	}
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	var opts []client.SendOption
	if id != "" {
		opts = append(opts, client.WithInputID(id))
	}
	receipt, err := l.client.SendCall(ctx, tool, raw, opts...)
	if err != nil {
		return err
	}
	p := newPrinter(a)
	p.single, p.wait, p.stored = true, wait, true
	out, err := p.follow(ctx, l.client, receipt, func(ctx context.Context, _ func(client.Receipt)) iter.Seq2[client.Update, error] {
		return l.client.Follow(ctx, receipt.App, receipt.Session, receipt.InputID)
	})
	if ctx.Err() != nil {
		a.say("detached: the call goes on; look at it with: %s", a.line("sessions show %s", receipt.Session))
		return errDetached
	}
	if err == nil && id != "" {
		err = l.client.SameCall(ctx, id, tool, raw)
	}
	if err != nil {
		return err
	}
	if out.Waiting != nil {
		if a.set.Output == "json" {
			err = a.printJSON(out, "  ")
		}
		a.waitingElsewhere(receipt.Session)
		return err
	}
	result, err := client.CallResult(out)
	switch protocol.CodeOf(err) {
	case protocol.CodeUnknownTool:
		return noTool(ctx, l.client, tool, err)
	case protocol.CodeSchemaViolation:
		return protocol.Errorf(protocol.CodeSchemaViolation, "%s; toolfabric tools show %s tells which there are", protocol.ProblemOf(err).Message, tool)
	}
	if err != nil {
		return err
	}
	return a.printResult(ctx, l.client, tool, result)
}

// noTool is the refusal of a call, which is written for models, with what a person can do about it.
func noTool(ctx context.Context, c *client.Client, tool string, err error) error {
	if all, terr := c.Tools(ctx); terr == nil && len(all) == 0 {
		return protocol.Errorf(protocol.CodeUnknownTool, "there is no tool %q, nor any other; add it with: toolfabric worker exec --name %s --description TEXT -- PROGRAM", tool, tool)
	}
	return protocol.Errorf(protocol.CodeUnknownTool, "%s; toolfabric tools ls lists them", protocol.ProblemOf(err).Message)
}

// printResult prints the answer whole, also when only a part of it fits into a log.
func (a *app) printResult(ctx context.Context, c *client.Client, tool string, r protocol.Result) error {
	if r.Body != nil {
		body, err := c.Body(ctx, *r.Body)
		if err != nil {
			return err
		}
		r.Value = body
	}
	if a.set.Output == "json" {
		if err := a.printJSON(r, "  "); err != nil {
			return err
		}
	} else if r.Outcome == protocol.OutcomeCompleted {
		fmt.Fprintln(a.out, a.out.Text(string(bare(r.Value))))
	}
	if r.Outcome == protocol.OutcomeCompleted {
		return nil
	}
	code := string(r.Code)
	if code == "" {
		code = string(r.Outcome)
	}
	return &failure{code: code, message: "tool " + tool + ": " + errorText(r.Value)}
}

// bare is what the tool answered: the value itself where it was no object and travels as {"result": value}.
func bare(value json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) == nil && len(fields) == 1 && len(fields["result"]) > 0 {
		return fields["result"]
	}
	return value
}

func errorText(value json.RawMessage) string {
	var v struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(value, &v) != nil || v.Error == "" {
		return string(value)
	}
	return v.Error
}
