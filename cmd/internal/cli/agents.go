package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/agents"
	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

func (a *app) agentsCmd() *cobra.Command {
	var dir string
	where := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().StringVar(&dir, "agents", "agents", "`DIR` of agent files, or one file")
		return cmd
	}
	ls := where(&cobra.Command{
		Use: "ls", Short: "List the agents of a folder", Args: cobra.NoArgs,
		Example: "  toolfabric agents ls --agents ./agents",
		RunE:    a.do(func(ctx context.Context, _ []string) error { return a.agentsLs(ctx, dir) }),
	})
	show := where(&cobra.Command{
		Use: "show AGENT", Short: "Show one agent", Args: cobra.ExactArgs(1),
		Example: "  toolfabric agents show helper --agents ./agents",
		RunE:    a.do(func(ctx context.Context, args []string) error { return a.agentsShow(ctx, dir, args[0]) }),
	})
	validate := &cobra.Command{
		Use: "validate PATH...", Short: "Check agent files and folders", Args: cobra.MinimumNArgs(1),
		Long: `Validate names every fault with file, line and column, those of the agents' skills too, which do not keep an agent from being
served. Nothing is asked and no key is needed.`,
		Example: "  toolfabric agents validate ./agents\n  toolfabric agents validate agents/helper/root_agent.yaml",
		RunE:    a.do(a.agentsValidate),
	}
	return group("agents", "Agents as files", "  toolfabric agents --agents ./agents\n  toolfabric agents validate ./agents", ls, show, validate)
}

// agentSummary is an agent as ls and show print it.
type agentSummary struct {
	Name        string   `json:"name"`
	Model       string   `json:"model"`
	Description string   `json:"description,omitempty"`
	Instruction string   `json:"instruction,omitempty"`
	Tools       []string `json:"tools"`
	Toolsets    []string `json:"toolsets,omitempty"`
	SubAgents   []string `json:"sub_agents,omitempty"`
	OutputKey   string   `json:"output_key,omitempty"`
	Limits      limits   `json:"limits"`
	Digest      string   `json:"digest"`
}

// has is what the agent can use, in one line.
func (s *agentSummary) has() string {
	all := slices.Clone(s.Tools)
	for _, t := range s.Toolsets {
		all = append(all, "set:"+t)
	}
	for _, a := range s.SubAgents {
		all = append(all, "agent:"+a)
	}
	return strings.Join(all, ",")
}

// limits are an agent's, as its file writes them.
type limits struct {
	ModelCalls   int    `json:"model_calls"`
	CallsPerTurn int    `json:"calls_per_turn"`
	WallTime     string `json:"wall_time"`
}

func summarize(a *llmagent.LLMAgent) agentSummary {
	cfg := a.Config()
	s := agentSummary{
		Name: a.Name(), Model: cfg.Model.Name(), Description: cfg.Description, Instruction: cfg.Instruction, Tools: []string{},
		OutputKey: cfg.OutputKey, Digest: a.Digest(),
		Limits: limits{cfg.Limits.ModelCalls, cfg.Limits.CallsPerTurn, cfg.Limits.WallTime.String()},
	}
	for _, t := range cfg.Tools {
		s.Tools = append(s.Tools, t.Name())
	}
	for _, t := range cfg.Toolsets {
		s.Toolsets = append(s.Toolsets, t.Name())
	}
	for _, sub := range cfg.SubAgents {
		s.SubAgents = append(s.SubAgents, sub.Name())
	}
	return s
}

func loadSummaries(ctx context.Context, path string) ([]agentSummary, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, protocol.Errorf(protocol.CodeUsage, "there is no file or folder %s; name the folder of your agents with --agents DIR", path)
	}
	list, err := agents.Models{Unasked: true}.Load(ctx, path)
	return summaries(list), err
}

func summaries(list []*llmagent.LLMAgent) []agentSummary {
	out := make([]agentSummary, 0, len(list))
	for _, one := range list {
		out = append(out, summarize(one))
	}
	return out
}

func (a *app) agentsLs(ctx context.Context, dir string) error {
	list, err := loadSummaries(ctx, dir)
	if err != nil {
		return err
	}
	return a.print(list, func() error {
		rows := make([][]string, 0, len(list))
		for _, s := range list {
			rows = append(rows, []string{s.Name, s.Model, s.has(), term.Clip(s.Description, 60)})
		}
		return a.table([]string{"AGENT", "MODEL", "TOOLS", "DESCRIPTION"}, rows)
	})
}

func (a *app) agentsShow(ctx context.Context, dir, name string) error {
	list, err := loadSummaries(ctx, dir)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Name != name {
			continue
		}
		return a.print(s, func() error {
			below := ""
			if len(s.SubAgents) > 0 {
				below = "sub-agents   " + strings.Join(s.SubAgents, ", ") + "\n"
			}
			_, err := fmt.Fprintf(a.out, "name         %s\nmodel        %s\ndescription  %s\ntools        %s\ntoolsets     %s\n%sdigest       %s\nlimits       %d model calls a run, %d calls a turn, %s a run\n\n%s\n",
				s.Name, s.Model, a.out.Text(s.Description), strings.Join(s.Tools, ", "), strings.Join(s.Toolsets, ", "), below, s.Digest,
				s.Limits.ModelCalls, s.Limits.CallsPerTurn, s.Limits.WallTime, a.out.Text(strings.TrimSpace(s.Instruction)))
			return err
		})
	}
	return protocol.Errorf(protocol.CodeUsage, "no agent %q in %s; toolfabric agents ls --agents %s lists them", name, dir, boot.Quoted(dir))
}

func (a *app) agentsValidate(ctx context.Context, paths []string) error {
	var faults []string
	var valid []agentSummary
	for _, path := range paths {
		list, err := agents.Models{Unasked: true}.Load(ctx, path)
		if err != nil {
			faults = append(faults, protocol.ProblemOf(err).Message)
			continue
		}
		for _, f := range agents.BrokenSkills(ctx, agents.Apps(list)) {
			faults = append(faults, f.Error())
		}
		valid = append(valid, summaries(list)...)
	}
	if len(faults) > 0 {
		return protocol.Errorf(protocol.CodeUsage, "%s", strings.Join(faults, "\n"))
	}
	return a.print(valid, func() error {
		for _, s := range valid {
			if _, err := fmt.Fprintf(a.out, "%s is valid\n", s.Name); err != nil {
				return err
			}
		}
		return nil
	})
}
