package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

func (a *app) approvalsCmd() *cobra.Command {
	o := parkedOptions{filter: client.ParkedFilter{Kind: client.WaitsConfirmation}, none: "nothing waits for a decision"}
	ls := &cobra.Command{
		Use: "ls", Short: "List the calls that wait for a person", Args: cobra.NoArgs,
		Example: `  toolfabric approvals ls
  toolfabric approvals ls --agent helper --tool transfer
  toolfabric approvals ls --watch                     rings when something new waits`,
		RunE: a.do(func(ctx context.Context, _ []string) error { return a.parkedLs(ctx, o) }),
	}
	o.register(ls)
	show := &cobra.Command{
		Use: "show CALL", Short: "Show exactly what would run, and who may decide", Args: cobra.ExactArgs(1),
		Long: `Show prints the arguments as the bytes that the digest names and that would run. Characters that act on a terminal or on
the eye are written as \uXXXX. CALL is the id of the call or of its confirmation, or the subject to decide on.`,
		Example: "  toolfabric approvals show 7qk3zv2m5h6x\n  toolfabric approvals show 7qk3zv2m5h6x --output json",
		RunE:    a.do(func(ctx context.Context, args []string) error { return a.parkedShow(ctx, args[0]) }),
	}
	return group("approvals", "Calls that wait for a person", "  toolfabric approvals\n  toolfabric approvals show 7qk3zv2m5h6x", ls, show, a.approveCmd(), a.denyCmd())
}

// decideOptions are the flags of approve and deny.
type decideOptions struct {
	confirmed                         bool
	as, payload, args, remark, digest string
}

func (o *decideOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.as, "as", "", "decide as this `APPROVER`; local when left out")
	f.StringVar(&o.payload, "payload", "", "what the tool asked to be filled in: JSON, @FILE or -")
	f.StringVar(&o.remark, "remark", "", "a word for the log")
	f.StringVar(&o.digest, "digest", "", "decide only if what waits has this digest, or one that begins so: what show printed")
}

func (a *app) approveCmd() *cobra.Command {
	o := decideOptions{confirmed: true}
	cmd := &cobra.Command{
		Use: "approve CALL", Short: "Let a waiting call run", Args: cobra.ExactArgs(1),
		Long: `Approve agrees to a call with exactly the arguments that wait, and prints the receipt; a decision that does not count ends
with 5. With --args the arguments are edited: that agrees to nothing yet, but asks again with the edited ones.`,
		Example: `  toolfabric approvals approve 7qk3zv2m5h6x --digest 1f2e3d4c5b6a7988    only if it is still what show printed
  toolfabric approvals approve 7qk3zv2m5h6x --as ann                     as ann: where two must agree, they decide by name
  toolfabric approvals approve 7qk3zv2m5h6x --payload '{"days":3}'       with what the tool asks to be filled in
  toolfabric approvals approve 7qk3zv2m5h6x --args '{"amount":5}'         asks again, with 5`,
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.args, "args", "", "edited arguments, which need a decision of their own: a JSON object, @FILE or -")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.decide(ctx, args[0], o) })
	return cmd
}

func (a *app) denyCmd() *cobra.Command {
	var o decideOptions
	cmd := &cobra.Command{
		Use: "deny CALL", Short: "Refuse a waiting call", Args: cobra.ExactArgs(1),
		Long: "Deny refuses a call: it is not executed, and the model is told. It prints the receipt; a decision that does not count ends\nwith 5.",
		Example: `  toolfabric approvals deny 7qk3zv2m5h6x --remark "not before Monday"
  toolfabric approvals deny 7qk3zv2m5h6x --as ann --digest 1f2e3d4c5b6a7988    as ann, if it is still what show printed`,
	}
	o.register(cmd)
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.decide(ctx, args[0], o) })
	return cmd
}

// decision reads the flags that need no connection.
func (a *app) decision(o decideOptions) (protocol.Decision, error) {
	d := protocol.Decision{Confirmed: o.confirmed, Hint: o.remark}
	var err error
	if o.as != "" {
		if err := protocol.CheckID(o.as); err != nil {
			return d, err
		}
	}
	if o.digest != "" && len(o.digest) < minDigest {
		return d, protocol.Errorf(protocol.CodeUsage, "--digest %s: at least its first %d characters", o.digest, minDigest)
	}
	if o.payload != "" {
		if d.Payload, _, err = a.readJSON(o.payload, "--payload", protocol.ArgsLimits); err != nil {
			return d, err
		}
	}
	if o.args != "" {
		d.Args, err = a.readArgs(o.args)
	}
	return d, err
}

// minDigest is how much of a digest binds a decision.
const minDigest = 8

func (a *app) decide(ctx context.Context, id string, o decideOptions) error {
	d, err := a.decision(o)
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
	if p.Confirmation != nil && !strings.HasPrefix(p.Confirmation.Digest, o.digest) {
		return protocol.Errorf(protocol.CodeDigestMismatch, "call %s waits with other arguments than those of digest %s; look again: %s", p.Call, o.digest, a.line("approvals show %s", p.Call))
	}
	r, err := l.client.Decide(ctx, p, d, o.as)
	if errors.Is(err, client.ErrNoReceipt) {
		return &failure{code: "no_receipt", message: protocol.ProblemOf(err).Message + "; start one with: toolfabric up, or toolfabric coordinator", absent: true}
	}
	if err != nil {
		return err
	}
	return a.printReceipt(p, d, r)
}

func (a *app) printReceipt(p client.Parked, d protocol.Decision, r protocol.Receipt) error {
	did := "denied"
	switch {
	case len(d.Args) > 0:
		did = "edited, and asked again,"
	case d.Confirmed:
		did = "approved"
	}
	if a.set.Output == "json" {
		if err := a.printJSON(r, "  "); err != nil {
			return err
		}
	}
	if r.Code != "" {
		return &failure{code: string(r.Code), message: fmt.Sprintf("not %s: %s", did, r.Message)}
	}
	if a.set.Output != "json" {
		if _, err := fmt.Fprintf(a.out, "%s %s as %s: %s\n", did, term.EscapeLine(p.Tool), r.Approver, term.EscapeLine(r.Message)); err != nil {
			return err
		}
	}
	if d.Confirmed && wantsPayload(p.Confirmation) {
		a.say("an answer that does not fit is asked for again: %s", a.line("approvals show %s", p.Call))
	}
	if len(d.Args) > 0 {
		a.say("look at what waits now: %s", a.line("approvals show %s", p.Call))
	}
	return nil
}

// jsonText is raw JSON on lines of its own, with every character visible.
func jsonText(raw json.RawMessage) string { return term.Reveal(indented(raw)) }
