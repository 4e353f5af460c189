package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// parkedOptions are the flags of a list of what waits.
type parkedOptions struct {
	filter client.ParkedFilter
	from   uint64
	limit  int
	watch  bool
	none   string // what an empty list says
}

func (o *parkedOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.filter.App, "agent", "", "only those of this agent (calls: single calls)")
	f.StringVar(&o.filter.Tool, "tool", "", "only calls of this tool")
	f.StringVar(&o.filter.User, "user", "", "only those of this user's sessions")
	f.StringVar(&o.filter.Session, "session", "", "only those of the session with this `ID`")
	f.IntVar(&o.limit, "limit", 100, "how many at most")
	f.Uint64Var(&o.from, "from", 0, "go on where a longer list broke off: the `NUMBER` that it names")
	f.BoolVar(&o.watch, "watch", false, "stay, tell what comes and goes, and ring the bell when something new waits")
}

func (a *app) parkedLs(ctx context.Context, o parkedOptions) error {
	if o.limit < 1 {
		return protocol.Errorf(protocol.CodeUsage, "--limit %d: it is 1 or more", o.limit)
	}
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if o.watch {
		return a.parkedWatch(ctx, l.client, o)
	}
	page, err := l.client.Parked(ctx, o.filter, o.from, o.limit)
	if err != nil {
		return a.absent(ctx, l, err)
	}
	return a.print(page, func() error {
		rows := make([][]string, 0, len(page.Parked))
		for _, p := range page.Parked {
			rows = append(rows, parkedRow(&p))
		}
		if err := a.list([]string{"CALL", "TOOL", "AGENT", "SESSION", "WAITS FOR", "SINCE", "UNTIL", "QUESTION"}, rows, o.none); err != nil {
			return err
		}
		if page.Next > 0 {
			a.say("there are more: go on with --from %d", page.Next)
		}
		return nil
	})
}

func parkedRow(p *client.Parked) []string {
	question := ""
	if p.Confirmation != nil {
		question = term.Clip(hint(p), 60)
	}
	return []string{p.Call, p.Tool, p.App, p.Session, waitsFor(p), ago(time.UnixMilli(p.Since)), until(p.Until), question}
}

// until is how long something still lasts, in its largest unit.
func until(ms int64) string {
	if ms == 0 {
		return ""
	}
	return in(time.Until(time.UnixMilli(ms)))
}

func in(d time.Duration) string {
	units := func(unit time.Duration, name string) string {
		return "in " + strconv.Itoa(int(d.Round(unit)/unit)) + name
	}
	switch {
	case d <= 0:
		return "over"
	case d < 100*time.Second:
		return units(time.Second, "s")
	case d < 100*time.Minute:
		return units(time.Minute, "m")
	case d < 48*time.Hour:
		return units(time.Hour, "h")
	default:
		return units(24*time.Hour, "d")
	}
}

// bell is what a terminal rings at.
const bell = "\a"

// parkedWatch tells what waits and what becomes of it until the user has seen enough.
func (a *app) parkedWatch(ctx context.Context, c *client.Client, o parkedOptions) error {
	current, shown, lost := false, 0, false
	for u, err := range c.WatchParked(ctx, o.filter, o.from) {
		if ctx.Err() != nil {
			return nil
		}
		if protocol.CodeOf(err) == protocol.CodeUnreachable {
			if !lost {
				a.say("connection lost; trying again")
			}
			lost = true
			continue
		}
		if err != nil {
			return err
		}
		lost = false
		switch {
		case u.Current:
			current = true
			if shown > o.limit {
				a.say("and %d more", shown-o.limit)
			}
		case u.Parked != nil:
			if shown++; !current && shown > o.limit {
				continue
			}
			if current && a.err.TTY {
				fmt.Fprint(a.err.Writer, bell)
			}
			err = a.watched(map[string]any{"parked": u.Parked}, parkedRow(u.Parked))
		case u.Gone != nil:
			err = a.watched(map[string]any{"gone": u.Gone}, []string{u.Gone.Call, "waits no more", "", u.Gone.Session})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watched writes one line of a watch.
func (a *app) watched(v any, row []string) error {
	if a.set.Output == "json" {
		return a.printLine(v)
	}
	var cells []string
	for _, cell := range row {
		if cell != "" {
			cells = append(cells, term.EscapeLine(cell))
		}
	}
	return a.write(strings.Join(cells, "  ") + "\n")
}
