package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

func (a *app) sessionsCmd() *cobra.Command {
	var agent string
	var all bool
	ls := &cobra.Command{
		Use: "ls", Short: "List the sessions, latest first", Args: cobra.NoArgs,
		Example: "  toolfabric sessions ls\n  toolfabric sessions ls --agent helper --output json",
		RunE:    a.do(func(ctx context.Context, _ []string) error { return a.sessionsLs(ctx, agent, all) }),
	}
	ls.Flags().StringVar(&agent, "agent", "", "only those of this agent (calls: single calls)")
	ls.Flags().BoolVar(&all, "all", false, "single calls too")
	show := &cobra.Command{
		Use: "show SESSION", Short: "Show a session as a conversation", Args: cobra.ExactArgs(1),
		Long:    "Show prints what was said and called. With --output json these are ADK's events.",
		Example: "  toolfabric sessions show 7qk3zv2m5h6x",
		RunE:    a.do(a.sessionsShow),
	}
	log := &cobra.Command{
		Use: "log SESSION", Short: "Print a session's log as it is stored", Args: cobra.ExactArgs(1),
		Example: "  toolfabric sessions log 7qk3zv2m5h6x\n  toolfabric sessions log 7qk3zv2m5h6x --output json | jq .event.turn",
		RunE:    a.do(a.sessionsLog),
	}
	del := &cobra.Command{
		Use: "delete SESSION", Short: "End a session and drop its log", Args: cobra.ExactArgs(1),
		Example: "  toolfabric sessions delete 7qk3zv2m5h6x",
		RunE:    a.do(a.sessionsDelete),
	}
	cancel := &cobra.Command{
		Use: "cancel SESSION", Short: "End what a session runs or waits for", Args: cobra.ExactArgs(1),
		Long: `Cancel ends the run of a session: what has not begun never will, what runs is told to stop, what waits is dropped. The
session stays and takes messages.`,
		Example: "  toolfabric sessions cancel 7qk3zv2m5h6x",
		RunE:    a.do(func(ctx context.Context, args []string) error { return a.cancel(ctx, args[0], "") }),
	}
	return group("sessions", "Conversations and single calls", "  toolfabric sessions\n  toolfabric sessions show 7qk3zv2m5h6x", ls, show, log, cancel, del)
}

func (a *app) sessionsLs(ctx context.Context, agent string, all bool) error {
	if agent != "" {
		if err := protocol.CheckName(agent); err != nil {
			return err
		}
	}
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	list, err := l.client.Sessions(ctx, agent)
	if err != nil {
		return err
	}
	none := "no sessions; start one with: toolfabric run --agent NAME TEXT"
	if agent == "" && !all {
		found := len(list)
		list = slices.DeleteFunc(list, func(s client.Session) bool { return s.App == protocol.CallsApp })
		if len(list) < found {
			none = "no conversations; toolfabric sessions --all lists single calls too"
		}
	}
	return a.print(list, func() error {
		rows := make([][]string, 0, len(list))
		for _, s := range list {
			problem := ""
			if s.Problem != nil {
				problem = term.Clip(s.Problem.Message, 60)
			}
			rows = append(rows, []string{s.ID, s.App, s.State, ago(s.LastActivity), problem})
		}
		return a.list([]string{"SESSION", "AGENT", "STATE", "ACTIVE", "PROBLEM"}, rows, none)
	})
}

func (a *app) sessionsShow(ctx context.Context, args []string) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	s, err := l.client.Find(ctx, args[0])
	if err != nil {
		return err
	}
	events, err := l.client.Events(ctx, s.App, s.ID)
	if err != nil {
		return err
	}
	if err := a.print(events, func() error { return writeConversation(a.out, s, events) }); err != nil || s.State != client.StateParked {
		return err
	}
	page, err := l.client.Parked(ctx, client.ParkedFilter{App: s.App, Session: s.ID}, 0, 0)
	for i := range page.Parked {
		p := newPrinter(a)
		p.waitsFor(&page.Parked[i])
		a.say("%s", strings.TrimSuffix(a.nextFor(&page.Parked[i]), "\n"))
	}
	return err
}

func (a *app) sessionsLog(ctx context.Context, args []string) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	s, err := l.client.Find(ctx, args[0])
	if err != nil {
		return err
	}
	log, err := l.client.Log(ctx, s.App, s.ID, 0)
	if err != nil {
		return err
	}
	if a.set.Output == "json" {
		for _, e := range log {
			if err := a.printLine(e); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, 0, len(log))
	for _, e := range log {
		rows = append(rows, []string{strconv.FormatUint(e.Seq, 10), e.Time.Local().Format(time.DateTime), strconv.FormatUint(e.Event.Epoch, 10), parts(&e.Event)})
	}
	return a.table([]string{"SEQ", "TIME", "EPOCH", "PARTS"}, rows)
}

// parts names what an event holds, in the order in which it is folded.
func parts(ev *protocol.Event) string {
	var p []string
	if ev.Adopt != nil {
		p = append(p, "adopt by "+short(ev.Adopt.Coordinator))
	}
	for _, in := range ev.Inputs {
		text := "input " + string(in.Kind)
		if in.Refused != nil {
			text += " refused: " + string(in.Refused.Code)
		}
		p = append(p, text)
	}
	for _, answer := range ev.Answers {
		p = append(p, "answer "+short(answer.Call)+" "+string(answer.Outcome))
	}
	if t := ev.Turn; t != nil {
		text := "turn"
		for _, c := range t.Calls {
			text += fmt.Sprintf(" %s(%s)=%s", c.Tool, short(c.ID), c.Verdict)
		}
		p = append(p, text)
	}
	if s := ev.Stop; s != nil {
		text := "stop " + string(s.Kind)
		if s.Problem != nil {
			text += ": " + string(s.Problem.Code)
		}
		p = append(p, text)
	}
	if len(ev.State) > 0 {
		p = append(p, "snapshot")
	}
	return strings.Join(p, "; ")
}

func (a *app) sessionsDelete(ctx context.Context, args []string) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	s, err := l.client.Find(ctx, args[0])
	if err != nil {
		return err
	}
	if err := l.client.Delete(ctx, s.App, s.ID); err != nil {
		return err
	}
	a.say("deleted session %s of %s", s.ID, s.App)
	return nil
}
