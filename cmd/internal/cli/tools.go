package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func (a *app) toolsCmd() *cobra.Command {
	ls := &cobra.Command{
		Use: "ls", Short: "List the tools that models can call", Args: cobra.NoArgs,
		Example: "  toolfabric tools ls\n  toolfabric tools ls --output json",
		RunE:    a.do(a.toolsLs),
	}
	show := &cobra.Command{
		Use: "show TOOL", Short: "Show a tool's declaration", Args: cobra.ExactArgs(1),
		Example: "  toolfabric tools show word_count",
		RunE:    a.do(a.toolsShow),
	}
	forget := &cobra.Command{
		Use: "forget TOOL", Short: "Stop offering a tool to models", Args: cobra.ExactArgs(1),
		Long:    "Forget removes a tool's accepted declarations. Stop its workers first: the next beat of one brings the tool back.",
		Example: "  toolfabric tools forget word_count",
		RunE:    a.do(a.toolsForget),
	}
	return group("tools", "What a model can call", "  toolfabric tools\n  toolfabric tools show word_count", ls, show, forget)
}

const noTools = "no tools yet; add one with: toolfabric worker exec --name NAME --description TEXT -- PROGRAM"

// absent replaces the error of a first read by what it mostly means: no coordinator has ever run in the namespace.
func (a *app) absent(ctx context.Context, l *link, err error) error {
	n := l.conn.Names()
	if protocol.CodeOf(err) != protocol.CodeUnreachable {
		return err
	}
	if _, state := l.conn.ConsumerState(ctx, n.Input(), protocol.CallsApp); protocol.CodeOf(state) != protocol.CodeNotFound {
		return err
	}
	name := cmp.Or(a.set.Namespace, natswire.DefaultNamespace)
	return &failure{code: string(protocol.CodeUnreachable), message: "nothing runs in namespace " + name + "; start it with: toolfabric up --namespace " + name, absent: true}
}

// listedTool is a tool as ls prints it.
type listedTool struct {
	client.Tool
	Workers int `json:"workers"`
}

func (a *app) toolsLs(ctx context.Context, _ []string) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	tools, err := s.client.Tools(ctx)
	if err != nil {
		return a.absent(ctx, s, err)
	}
	pools, err := s.client.Pools(ctx)
	if err != nil {
		return err
	}
	workers := map[string]int{}
	for _, p := range pools {
		workers[p.Tool] = p.Serving()
	}
	list := make([]listedTool, 0, len(tools))
	for _, t := range tools {
		list = append(list, listedTool{Tool: t, Workers: workers[t.Name]})
	}
	return a.print(list, func() error {
		rows := make([][]string, 0, len(list))
		for _, t := range list {
			rows = append(rows, []string{t.Name, string(t.Declaration.Class()), strconv.Itoa(t.Workers), ago(t.AcceptedAt), term.Clip(t.Declaration.Description, 60)})
		}
		return a.list([]string{"TOOL", "EFFECT", "WORKERS", "ACCEPTED", "DESCRIPTION"}, rows, noTools)
	})
}

func (a *app) toolsShow(ctx context.Context, args []string) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	t, err := s.client.Tool(ctx, args[0])
	if err != nil {
		return err
	}
	return a.print(t, func() error { return a.describe(t) })
}

func (a *app) describe(t client.Tool) error {
	d := t.Declaration
	rows := [][]string{
		{"name", t.Name},
		{"description", d.Description},
		{"effect", string(d.Class())},
		{"timeout", millis(d.Timeout, protocol.DefaultTimeout)},
		{"queue timeout", millis(d.QueueTimeout, protocol.DefaultQueueTimeout)},
		{"attempts", strconv.Itoa(orDefault(d.Attempts, protocol.DefaultAttempts))},
		{"digest", t.Digest},
		{"accepted", t.AcceptedAt.Local().Format(time.DateTime) + " from worker " + t.Worker},
	}
	for _, row := range rows {
		fmt.Fprintf(a.out, "%-14s %s\n", row[0], a.out.Text(row[1]))
	}
	for _, schema := range []struct {
		name string
		raw  json.RawMessage
	}{{"parameters", d.Parameters}, {"response", d.Response}} {
		if len(schema.raw) == 0 {
			continue
		}
		var b bytes.Buffer
		if json.Indent(&b, schema.raw, "", "  ") == nil {
			fmt.Fprintf(a.out, "\n%s\n%s\n", schema.name, a.out.Text(b.String()))
		}
	}
	return nil
}

func millis(ms int64, fallback time.Duration) string {
	if ms == 0 {
		return fallback.String()
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

func orDefault(n, fallback int) int {
	if n == 0 {
		return fallback
	}
	return n
}

func (a *app) toolsForget(ctx context.Context, args []string) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	pool, err := s.client.Pool(ctx, args[0])
	if err != nil {
		return err
	}
	if err := s.client.Forget(ctx, args[0]); err != nil {
		return err
	}
	a.say("forgot %s", args[0])
	if n := pool.Serving(); n > 0 {
		a.say("%d workers still serve it; their next beat brings it back: stop them, then forget it again", n)
	}
	return nil
}
