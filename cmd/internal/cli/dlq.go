package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

func (a *app) dlqCmd() *cobra.Command {
	var from uint64
	var limit int
	ls := &cobra.Command{
		Use: "ls", Short: "List what was given up, oldest first", Args: cobra.NoArgs,
		Example: "  toolfabric dlq ls\n  toolfabric dlq ls --output json",
		RunE:    a.do(func(ctx context.Context, _ []string) error { return a.dlqLs(ctx, from, limit) }),
	}
	ls.Flags().IntVar(&limit, "limit", 100, "how many at most")
	ls.Flags().Uint64Var(&from, "from", 0, "go on where a longer list broke off: the `NUMBER` that it names")
	show := &cobra.Command{
		Use: "show NUMBER", Short: "Show a dead letter with its reason and bytes", Args: cobra.ExactArgs(1),
		Long:    "Show prints a dead letter. NUMBER is its number, or the id of its call or session.",
		Example: "  toolfabric dlq show 17\n  toolfabric dlq show 17 --output json | jq -r .data | base64 -d",
		RunE:    a.do(a.dlqShow),
	}
	retry := &cobra.Command{
		Use: "retry NUMBER", Short: "Say or call it again, where that is safe", Args: cobra.ExactArgs(1),
		Long: `Retry publishes an input again under its own id, so that it counts once, and makes a call anew as a call of its own, since
its session has been told how it ended. It refuses with 5 and the reason what cannot be read, what a quarantined session was to
take, and a call of a tool that is not repeatable, unless its claim shows that it was never executed. The letter stays.`,
		Example: "  toolfabric dlq retry 17",
		RunE:    a.do(a.dlqRetry),
	}
	drop := &cobra.Command{
		Use: "drop NUMBER...", Short: "Remove dead letters for good", Args: cobra.MinimumNArgs(1),
		Example: "  toolfabric dlq drop 17 18",
		RunE:    a.do(a.dlqDrop),
	}
	return group("dlq", "Dead letters: what was given up, and why", "  toolfabric dlq\n  toolfabric dlq show 17", ls, show, retry, drop)
}

func (a *app) dlqLs(ctx context.Context, from uint64, limit int) error {
	if limit < 1 {
		return protocol.Errorf(protocol.CodeUsage, "--limit %d: it is 1 or more", limit)
	}
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	page, err := l.client.DeadLetters(ctx, from, limit)
	if err != nil {
		return a.absent(ctx, l, err)
	}
	return a.print(page, func() error {
		rows := make([][]string, 0, len(page.Letters))
		for _, d := range page.Letters {
			rows = append(rows, []string{strconv.FormatUint(d.Number, 10), d.Kind, string(d.Code), ago(d.Time), cmp.Or(d.Tool, d.App), cmp.Or(d.Call, d.Session), term.Clip(d.Reason, 60)})
		}
		if err := a.list([]string{"NUMBER", "KIND", "CODE", "WHEN", "TOOL OR AGENT", "CALL OR SESSION", "REASON"}, rows, "no dead letters"); err != nil {
			return err
		}
		if page.Next > 0 {
			a.say("there are more: go on with --from %d", page.Next)
		}
		return nil
	})
}

// letter finds the dead letter that a command names.
func (a *app) letter(ctx context.Context, id string, use func(*link, client.DeadLetter) error) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	d, err := l.client.DeadLetter(ctx, id)
	if err != nil {
		return err
	}
	return use(l, d)
}

func (a *app) dlqShow(ctx context.Context, args []string) error {
	return a.letter(ctx, args[0], func(_ *link, d client.DeadLetter) error {
		return a.print(d, func() error {
			var b strings.Builder
			for _, row := range [][2]string{
				{"number", strconv.FormatUint(d.Number, 10)}, {"kind", d.Kind}, {"id", d.ID}, {"code", string(d.Code)}, {"reason", d.Reason},
				{"stored", d.Time.Local().Format(time.DateTime) + " (" + ago(d.Time) + ")"}, {"from", d.Subject + ", number " + strconv.FormatUint(d.Seq, 10) + " of " + d.Stream},
				{"agent", d.App}, {"session", d.Session}, {"tool", d.Tool}, {"call", d.Call},
			} {
				if row[1] != "" {
					fmt.Fprintf(&b, "%-8s %s\n", row[0], term.Reveal(row[1]))
				}
			}
			fmt.Fprintf(&b, "\n%d bytes\n%s\n", len(d.Data), bodyText(d.Data))
			return a.write(b.String())
		})
	})
}

// bodyText is bytes of anybody as a person can read them: text, or base64.
func bodyText(data []byte) string {
	if utf8.Valid(data) {
		return jsonText(data)
	}
	return "(base64) " + base64.StdEncoding.EncodeToString(data)
}

func (a *app) dlqRetry(ctx context.Context, args []string) error {
	return a.letter(ctx, args[0], func(l *link, d client.DeadLetter) error {
		r, err := l.client.RetryLetter(ctx, d)
		if err != nil {
			return err
		}
		return a.print(r, func() error {
			a.say("the letter stays until: toolfabric dlq drop %d", d.Number)
			return a.write("sent again to session " + r.Session + " of " + r.App + "\n")
		})
	})
}

func (a *app) dlqDrop(ctx context.Context, args []string) error {
	for _, id := range args {
		err := a.letter(ctx, id, func(l *link, d client.DeadLetter) error { return l.client.DropLetter(ctx, d) })
		if err != nil {
			return err
		}
		a.say("dropped %s", id)
	}
	return nil
}
