// Package agents reads agents from files and finds their models by name.
package agents

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/agentfile"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/gemini"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

// Models finds models by the names that agent files use: gemini-* is Gemini by its API (GOOGLE_API_KEY,
// GOOGLE_GEMINI_BASE_URL), scripted:FILE plays a script, whose path is relative to the agent file.
type Models struct {
	// Unasked models are only looked at, so that a missing key is no fault.
	Unasked bool
	// Shared are the skills on the bus; nil has none, for agents that are only looked at.
	Shared *Shared
}

const scriptPrefix = "scripted:"

// Find returns a model. Its errors are of code usage.
func (m Models) Find(ctx context.Context, file, name string) (model.LLM, error) {
	script, isScript := strings.CutPrefix(name, scriptPrefix)
	switch {
	case isScript:
		if !filepath.IsAbs(script) {
			script = filepath.Join(filepath.Dir(file), script)
		}
		s, err := scripted.Load(script)
		if err != nil {
			return nil, err
		}
		return scripted.New(name, s), nil
	case strings.HasPrefix(name, "gemini-"):
		cfg := gemini.Config{Model: name}
		if m.Unasked {
			cfg.APIKey = cmp.Or(os.Getenv("GOOGLE_API_KEY"), "unasked")
		}
		return gemini.New(ctx, cfg)
	default:
		return nil, protocol.Errorf(protocol.CodeUsage, "unknown model %q: it is gemini-* or scripted:FILE", name)
	}
}

// Load reads the agents of a folder, or the one of a file, by name.
func (m Models) Load(ctx context.Context, path string) ([]*llmagent.LLMAgent, error) {
	find := func(file, name string) (model.LLM, error) { return m.Find(ctx, file, name) }
	shared := agentfile.WithSharedSkills(m.Shared.source)
	info, err := os.Stat(path)
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the agents in %s cannot be read", path)
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, protocol.Wrap(err, protocol.CodeUsage, "the agent file %s cannot be read", path)
		}
		a, err := agentfile.ParseFile(path, data, find, shared)
		if err != nil {
			return nil, faults(err)
		}
		return []*llmagent.LLMAgent{a}, nil
	}
	found, err := agentfile.Load(path, find, shared)
	if err != nil {
		return nil, faults(err)
	}
	list := make([]*llmagent.LLMAgent, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[name])
	}
	return list, nil
}

// faults makes all faults of agent files one message: whoever reads it mends them in one go.
func faults(err error) error {
	if _, ok := err.(agentfile.Errors); ok {
		return protocol.Errorf(protocol.CodeUsage, "%s", err.Error())
	}
	return err
}

// Apps are agents as a coordinator takes them.
func Apps(list []*llmagent.LLMAgent) []agent.Agent {
	apps := make([]agent.Agent, 0, len(list))
	for _, a := range list {
		apps = append(apps, a)
	}
	return apps
}
