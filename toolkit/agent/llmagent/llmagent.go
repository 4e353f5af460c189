package llmagent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/toolkit/agent"
)

// LLMAgent is the dynamic type of what New returns. It does not change and may be used concurrently.
type LLMAgent struct {
	agent.Agent
	cfg    Config
	output *output // nil without an output schema
	digest string
}

// New checks cfg and makes the agent. Its error joins one *FieldError per fault, all of them at once.
func New(cfg Config) (agent.Agent, error) {
	if cfg.IncludeContents == "" {
		cfg.IncludeContents = IncludeContentsDefault
	}
	cfg.Limits = cfg.Limits.filled()
	a := &LLMAgent{cfg: cfg}
	a.cfg.SubAgents = slices.Clone(cfg.SubAgents)
	var err error
	if a.output, err = validate(&a.cfg); err != nil {
		return nil, err
	}
	if a.Agent, err = agent.New(agent.Config{Name: cfg.Name, Description: cfg.Description, SubAgents: a.cfg.SubAgents}); err != nil {
		return nil, err
	}
	a.digest = digest(&a.cfg, a.output)
	return a, nil
}

// FindAgent is the agent itself when that is its name.
func (a *LLMAgent) FindAgent(name string) agent.Agent {
	if name == a.Name() {
		return a
	}
	return a.FindSubAgent(name)
}

// Config is a copy of what the agent was made of, with the defaults filled in. What it points to must not be changed.
func (a *LLMAgent) Config() Config { return a.cfg }

// Digest identifies the definition: SHA-256 over its data in lower-case hex. Of code (a provider, a model) only the name
// or the presence is in it.
func (a *LLMAgent) Digest() string { return a.digest }

func digest(cfg *Config, out *output) string {
	tools := make([]string, 0, len(cfg.Tools))
	for _, t := range cfg.Tools {
		tools = append(tools, t.Name())
	}
	sets := make([]string, 0, len(cfg.Toolsets))
	for _, t := range cfg.Toolsets {
		sets = append(sets, t.Name())
	}
	subs := make([]string, 0, len(cfg.SubAgents))
	for _, sub := range cfg.SubAgents {
		subs = append(subs, sub.Name())
	}
	var schema json.RawMessage
	if out != nil {
		schema = out.schema
	}
	data := map[string]any{
		"name": cfg.Name, "description": cfg.Description, "model": cfg.Model.Name(),
		"instruction": cfg.Instruction, "instruction_provider": cfg.InstructionProvider != nil,
		"global_instruction": cfg.GlobalInstruction, "global_instruction_provider": cfg.GlobalInstructionProvider != nil,
		"generate": cfg.GenerateContentConfig, "include_contents": cfg.IncludeContents,
		"output_key": cfg.OutputKey, "output_schema": schema, "tools": tools, "toolsets": sets, "limits": cfg.Limits,
		"sub_agents": subs, "no_transfer_to_parent": cfg.DisallowTransferToParent, "no_transfer_to_peers": cfg.DisallowTransferToPeers,
	}
	if n := callbacks(cfg); n != nil {
		data["callbacks"] = n
	}
	b, _ := json.Marshal(data)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// callbacks is how many callbacks of each kind there are; nil without any.
func callbacks(cfg *Config) map[string]int {
	var counts map[string]int
	for field, list := range callbackFields(cfg) {
		if n := list.Len(); n > 0 {
			if counts == nil {
				counts = map[string]int{}
			}
			counts[field] = n
		}
	}
	return counts
}

// callbackFields yields the lists of callbacks by the names of their fields.
func callbackFields(cfg *Config) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		v := reflect.ValueOf(cfg).Elem()
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; strings.HasSuffix(name, "Callbacks") && !yield(name, v.Field(i)) {
				return
			}
		}
	}
}
