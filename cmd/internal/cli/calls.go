package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

func (a *app) callsCmd() *cobra.Command {
	o := parkedOptions{none: "no call waits"}
	ls := &cobra.Command{
		Use: "ls", Short: "List the calls that wait, for a person or a result", Args: cobra.NoArgs,
		Example: "  toolfabric calls ls\n  toolfabric calls ls --waits result --tool report\n  toolfabric calls ls --watch --output json",
		RunE:    a.do(func(ctx context.Context, _ []string) error { return a.parkedLs(ctx, o) }),
	}
	o.register(ls)
	ls.Flags().StringVar(&o.filter.Kind, "waits", "", "only those that wait for a confirmation, or a result")
	show := &cobra.Command{
		Use: "show CALL", Short: "Show what a call waits for, or how it ended", Args: cobra.ExactArgs(1),
		Example: "  toolfabric calls show 7qk3zv2m5h6x",
		RunE:    a.do(a.callsShow),
	}
	return group("calls", "Calls that wait: what for, results, cancel", "  toolfabric calls\n  toolfabric calls show 7qk3zv2m5h6x", ls, show, a.completeCmd(), a.cancelCallCmd())
}

func (a *app) callsShow(ctx context.Context, args []string) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	p, err := l.client.FindParked(ctx, args[0])
	if err == nil {
		return a.print(p, func() error { return a.writeParked(&p) })
	}
	if protocol.CodeOf(err) != protocol.CodeNotFound || protocol.CheckID(args[0]) != nil {
		return err
	}
	ends, endsErr := l.client.CallEnds(ctx, args[0])
	if endsErr != nil {
		return endsErr
	}
	if len(ends) == 0 {
		return err
	}
	return a.print(ends, func() error {
		return a.write(endsText(ends))
	})
}

// endsText is the answers of a call, of which the last one is its end.
func endsText(ends []client.CallEnd) string {
	var b strings.Builder
	fmt.Fprintf(&b, "call         %s\ntool         %s\nsession      %s\n", ends[0].Call, ends[0].Tool, ends[0].Session)
	for _, end := range ends {
		word := "ended"
		switch end.Result.Outcome {
		case protocol.OutcomePending:
			word = "so far"
		case protocol.OutcomeAsks:
			word = "asked"
		}
		fmt.Fprintf(&b, "\n%-12s %s, %s, by %s\n%s\n", word, term.Reveal(string(end.Result.Outcome)), ago(end.Stored), term.Reveal(end.Result.Worker), jsonText(end.Result.Value))
	}
	return b.String()
}

// completeOptions are the flags of complete.
type completeOptions struct {
	result, fault, message string
	percent                float64
	interim                bool
}

func (a *app) completeCmd() *cobra.Command {
	var o completeOptions
	cmd := &cobra.Command{
		Use: "complete CALL", Short: "Give a waiting call its result from outside", Args: cobra.ExactArgs(1),
		Long: `Complete stores the result of a call that waits for one; its session goes on with it. The first result counts, any other is
refused with 5. With --interim the model is told, and the call waits on. --percent or --message alone only tell whoever
watches.`,
		Example: `  toolfabric calls complete 7qk3zv2m5h6x --result '{"url":"https://example.com/r/1"}'
  toolfabric calls complete 7qk3zv2m5h6x --result @report.json
  toolfabric calls complete 7qk3zv2m5h6x --error "the printer is on fire"
  toolfabric calls complete 7qk3zv2m5h6x --interim --result '{"stage":"printing"}' --percent 40
  toolfabric calls complete 7qk3zv2m5h6x --percent 60`,
	}
	f := cmd.Flags()
	f.StringVar(&o.result, "result", "", "what the call yields: any JSON, @FILE or -")
	f.StringVar(&o.fault, "error", "", "the call failed: a `TEXT` that the model reads")
	f.BoolVar(&o.interim, "interim", false, "the call goes on, this is what there is so far")
	f.Float64Var(&o.percent, "percent", 0, "how far it is, 0 to 100")
	f.StringVar(&o.message, "message", "", "what it is doing")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.complete(ctx, args[0], o) })
	return cmd
}

// read makes the flags a result; nil is progress only.
func (o *completeOptions) read(a *app) (*protocol.Result, error) {
	if o.percent < 0 || o.percent > 100 {
		return nil, protocol.Errorf(protocol.CodeUsage, "--percent %g: it is 0 to 100", o.percent)
	}
	r := &protocol.Result{Outcome: protocol.OutcomeCompleted}
	switch {
	case o.fault != "" && (o.result != "" || o.interim):
		return nil, protocol.Errorf(protocol.CodeUsage, "--error ends the call: it goes with neither --result nor --interim")
	case o.fault != "":
		r.Outcome, r.Value = protocol.OutcomeFailed, protocol.ErrorValue(o.fault)
		return r, nil
	case o.result != "":
		var err error
		if r.Value, _, err = a.readJSON(o.result, "--result", protocol.MessageLimits); err != nil {
			return nil, err
		}
	case o.interim:
		r.Value = json.RawMessage(`{"status":"pending"}`)
	case o.percent > 0 || o.message != "":
		return nil, nil
	default:
		return nil, protocol.Errorf(protocol.CodeUsage, "what does the call yield? give --result JSON, --error TEXT, or --percent N for progress")
	}
	if !o.interim {
		return r, nil
	}
	r.Outcome = protocol.OutcomePending
	if o.percent > 0 {
		r.Value = withPercent(r.Value, o.percent)
	}
	return r, nil
}

// withPercent adds to an object how far its call is, unless it says so itself.
func withPercent(value json.RawMessage, percent float64) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil || fields == nil || fields["percent"] != nil {
		return value
	}
	add := `"percent":` + strconv.FormatFloat(percent, 'f', -1, 64)
	if len(fields) > 0 {
		add += ","
	}
	return json.RawMessage("{" + add + strings.TrimPrefix(string(value), "{"))
}

func (a *app) complete(ctx context.Context, id string, o completeOptions) error {
	r, err := o.read(a)
	if err != nil {
		return err
	}
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	p, err := l.client.FindParked(ctx, id)
	if err != nil {
		return err
	}
	if o.percent > 0 || o.message != "" {
		if err := l.client.ReportProgress(ctx, p, protocol.Progress{Percent: o.percent, Message: o.message}); err != nil {
			return err
		}
	}
	did, seq := "told how far it is", uint64(0)
	if r != nil {
		if seq, err = l.client.Complete(ctx, p, *r); err != nil {
			return err
		}
		did = string(r.Outcome)
	}
	v := map[string]any{"call": p.Call, "session": p.Session, "tool": p.Tool, "outcome": did, "seq": seq}
	if r == nil {
		delete(v, "outcome")
		delete(v, "seq")
	}
	return a.print(v, func() error {
		return a.write(fmt.Sprintf("%s of session %s: %s\n", p.Tool, p.Session, did))
	})
}

func (a *app) cancelCallCmd() *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use: "cancel CALL", Short: "End a call, and let its session go on", Args: cobra.ExactArgs(1),
		Long: `Cancel ends a call that waits; one that runs is told to stop, and needs --session. The model is told that it was cancelled,
and whether it may have run.`,
		Example: "  toolfabric calls cancel 7qk3zv2m5h6x\n  toolfabric calls cancel 7qk3zv2m5h6x --session a2b3c4d5e6f7",
	}
	cmd.Flags().StringVar(&session, "session", "", "the call's session, by its `ID`: for a call that does not wait")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.cancel(ctx, session, args[0]) })
	return cmd
}

// cancel ends the run of a session, or one call, whose session may be left out when it waits.
func (a *app) cancel(ctx context.Context, session, call string) error {
	if call != "" && session != "" {
		if err := protocol.CheckID(call); err != nil {
			return err
		}
	}
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	var s client.Session
	if session != "" {
		s, err = l.client.Find(ctx, session)
	} else {
		var p client.Parked
		p, err = l.client.FindParked(ctx, call)
		s.App, s.ID, call = p.App, p.Session, p.Call
	}
	if err != nil {
		return err
	}
	if err := l.client.Cancel(ctx, s.App, s.ID, call); err != nil {
		if ctx.Err() != nil {
			a.say("detached: the wish is stored, and a coordinator carries it out")
			return errDetached
		}
		return err
	}
	return a.print(map[string]string{"app": s.App, "session": s.ID, "cancelled": call}, func() error {
		if call == "" {
			return a.write("cancelled the run of session " + s.ID + "\n")
		}
		return a.write("cancelled call " + call + " of session " + s.ID + "\n")
	})
}
