package runner_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolfabric/toolfabric/cmd/runner"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// set is a toolset that lists what it is told.
type set struct {
	tools  []tool.Tool
	err    error
	closed atomic.Int64
}

func (*set) Name() string                                       { return "set" }
func (s *set) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return s.tools, s.err }
func (s *set) Close() error                                     { s.closed.Add(1); return nil }

// panicking is a toolset whose code panics.
type panicking struct{}

func (panicking) Name() string                                     { return "panicking" }
func (panicking) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { panic("a bug of the set") }

func TestToolsOfSetsAreThereForTheFirstMessage(t *testing.T) {
	t.Parallel()
	good := &set{tools: []tool.Tool{function(t, functiontool.Config{Name: "sum"}, sum)}}
	broken := &set{err: errors.New("no connection")}
	a, err := llmagent.New(llmagent.Config{Name: "adder", Model: script(t, sumScript), Toolsets: []tool.Toolset{broken, panicking{}, good}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, runner.Config{Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	events, err := run(t.Context(), r, "u", "s", say("add 2 and 3"), agent.RunConfig{})
	if err != nil || !strings.HasSuffix(lines(events), "T(It is 5.)\n") {
		t.Errorf("%v\n%s", err, lines(events))
	}
	if err := r.Close(); err != nil || good.closed.Load() != 1 || broken.closed.Load() != 1 {
		t.Errorf("closed %d and %d times, %v", good.closed.Load(), broken.closed.Load(), err)
	}
}

func TestPluginsAreAskedAndBelongToTheAgent(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	p, err := plugin.New(plugin.Config{Name: "counts", BeforeToolCallback: func(tool.Context, tool.Tool, map[string]any) (map[string]any, error) {
		asked.Add(1)
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	service := session.InMemoryService()
	cfg := runner.Config{Agent: newAgent(t, "adder", script(t, sumScript), function(t, functiontool.Config{Name: "sum"}, sum)), SessionService: service,
		AutoCreateSession: true, PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p}}}
	r := newRunner(t, cfg)
	if _, err := run(t.Context(), r, "u", "s", say("add 2 and 3"), agent.RunConfig{}); err != nil {
		t.Fatal(err)
	}
	if asked.Load() == 0 {
		t.Error("the plugin was not asked")
	}
	cfg.PluginConfig = runner.PluginConfig{}
	if _, err := runner.New(cfg); protocol.CodeOf(err) != protocol.CodeUsage {
		t.Errorf("the same agent without its plugins: %v", err)
	}
	cfg.PluginConfig = runner.PluginConfig{CloseTimeout: 1}
	if _, err := runner.New(cfg); protocol.CodeOf(err) != protocol.CodeUnsupported {
		t.Errorf("a limit that nobody keeps: %v", err)
	}
}
