package agentfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

// ParseFile makes an agent of one file's bytes, with the agents below it, whose files stand in the same folder or below it.
// file is named in errors, which are Errors, and to models.
func ParseFile(file string, data []byte, models func(file, name string) (model.LLM, error), options ...Option) (*llmagent.LLMAgent, error) {
	r := newReader(file, models)
	for _, o := range options {
		o(r.tree)
	}
	made := r.agent(r.parse(data), nil)
	if len(r.faults) > 0 {
		return nil, r.faults.sorted()
	}
	return made, nil
}

// agent makes an agent of a mapping. above is the model of the agent that it is a sub-agent of; nil for the first one. It
// returns nil after a fault.
func (r *reader) agent(body ast.Node, above model.LLM) *llmagent.LLMAgent {
	if body == nil || !r.classKnown(body) {
		return nil
	}
	var doc document
	r.read("", body, reflect.ValueOf(&doc).Elem())
	r.required(body, doc, above != nil)
	cfg := r.config(&doc, above)
	// New judges the rest even when there are faults already: all of them are told at once.
	made, err := llmagent.New(cfg)
	r.adopt(err)
	if err != nil && len(r.faults) == 0 {
		r.fault(r.top, "%s", public(err))
	}
	if len(r.faults) > 0 {
		return nil
	}
	return made.(*llmagent.LLMAgent)
}

// classKnown looks at agent_class alone: the keys of another class would all be faults.
func (r *reader) classKnown(body ast.Node) bool {
	for _, entry := range entries(body) {
		if keyOf(entry) != "agent_class" {
			continue
		}
		class, _ := scalarText(entry.Value)
		switch class {
		case "", "LlmAgent", "google.adk.agents.LlmAgent", "google.adk.agents.llm_agent.LlmAgent":
			return true
		case "LoopAgent", "ParallelAgent", "SequentialAgent", "Workflow":
			r.fault(placeOf(entry.Value), "agent_class %s is not yet supported: this version runs LlmAgent", class)
		default:
			hint := ""
			if strings.Contains(class, ".") {
				hint = ", and a file cannot bring code: deploy what it does as a pool and list that under tools"
			}
			r.fault(placeOf(entry.Value), "agent_class %q is not known: this version runs LlmAgent%s", class, hint)
		}
		return false
	}
	return true
}

// required looks for the keys that an agent cannot be without. One below another has that one's model unless it names its own.
func (r *reader) required(body ast.Node, doc document, inherits bool) {
	if !isMapping(body) {
		return // told by read
	}
	present := map[string]ast.Node{}
	for _, entry := range entries(body) {
		present[keyOf(entry)] = entry.Value
	}
	for key, want := range map[string]struct{ value, hint string }{
		"name":        {doc.Name, "clients address the agent by it"},
		"model":       {doc.Model, "such as gemini-2.5-flash"},
		"instruction": {doc.Instruction, "what the model is told to do"},
	} {
		n, found := present[key]
		switch {
		case !found && key == "model" && inherits:
		case !found:
			r.fault(r.top, "%s is missing: %s", key, want.hint)
		case isNull(n):
			r.fault(placeOf(n), "%s is empty: %s", key, want.hint)
		case want.value == "":
			if s, text := scalarText(n); text && s == "" {
				r.fault(placeOf(n), "%s is empty: %s", key, want.hint)
			}
		}
	}
}

func (r *reader) config(doc *document, above model.LLM) llmagent.Config {
	cfg := llmagent.Config{
		Model: above, DisallowTransferToParent: doc.DisallowTransferToParent, DisallowTransferToPeers: doc.DisallowTransferToPeers,
		Name: doc.Name, Description: doc.Description, Instruction: doc.Instruction,
		GenerateContentConfig: doc.GenerateContentConfig, IncludeContents: llmagent.IncludeContents(doc.IncludeContents),
		OutputKey: doc.OutputKey, Limits: llmagent.Limits(doc.Toolfabric.Limits),
	}
	if doc.Model != "" {
		m, err := r.tree.models(r.file, doc.Model)
		if err != nil {
			r.fault(r.at["model"], "model %s: %s", doc.Model, public(err))
		}
		cfg.Model = m
	}
	cfg.OutputJSONSchema = r.outputSchema(doc.OutputSchema)
	for i, entry := range doc.Tools {
		path := fmt.Sprintf("tools[%d]", i)
		at, found := r.at[path+".name"]
		switch {
		case !found:
			if at, found = r.at[path]; found && !r.told(at) {
				r.fault(at, "a tool needs a name: - name: NAME")
			}
			cfg.Tools = append(cfg.Tools, nil)
		case strings.ContainsAny(entry.Name, "./:"):
			pool := entry.Name[strings.LastIndexAny(entry.Name, "./:")+1:]
			r.fault(at, "%s is a reference to code, which a file cannot bring: deploy the function as a pool named %s (toolfabric worker) and write name: %s", entry.Name, pool, pool)
			cfg.Tools = append(cfg.Tools, nil)
		case entry.Name == "SkillToolset":
			r.fault(at, "SkillToolset: say which skills under toolfabric, such as skills: {folder: skills}")
			cfg.Tools = append(cfg.Tools, nil)
		case classes[entry.Name]:
			r.fault(at, "%s is not yet supported: list the tools themselves by the names of their pools", entry.Name)
			cfg.Tools = append(cfg.Tools, nil)
		case entry.Name == exitlooptool.Name:
			exit, _ := exitlooptool.New() // never fails
			cfg.Tools = append(cfg.Tools, exit)
		default:
			cfg.Tools = append(cfg.Tools, tool.Pool(entry.Name))
		}
	}
	if set := r.skills(doc.Name, &doc.Toolfabric.Skills); set != nil {
		cfg.Toolsets = append(cfg.Toolsets, set)
	}
	cfg.SubAgents = r.below(doc.SubAgents, cfg.Model)
	return cfg
}

// classes are ADK's tools that stand for other tools.
var classes = map[string]bool{"AgentTool": true, "MCPToolset": true, "McpToolset": true, "LongRunningFunctionTool": true, "ExampleTool": true}

// outputSchema takes a JSON Schema that is written out. ADK's own form names a Python class.
func (r *reader) outputSchema(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		r.fault(r.at["output_schema"], "output_schema is not a mapping: write a JSON Schema out, such as {type: object, properties: {...}}")
		return nil
	}
	if name, ok := object["name"].(string); ok && object["type"] == nil && object["properties"] == nil {
		r.fault(r.at["output_schema.name"], "output_schema: %s is a reference to code, which a file cannot bring: write the JSON Schema out", name)
		return nil
	}
	return raw
}

// adopt gives New's faults their places. What the file's own checks have told is left out.
func (r *reader) adopt(err error) {
	for _, e := range unjoin(err) {
		fault, ok := errors.AsType[*llmagent.FieldError](e)
		if !ok {
			r.fault(r.top, "%s", public(e))
			continue
		}
		path := pathOf(fault.Field)
		at, found := r.at[path]
		if !found || r.told(at) {
			continue // missing or of the wrong type
		}
		r.fault(at, "%s: %s", path, public(fault.Err))
	}
}

func (r *reader) told(at place) bool {
	for _, f := range r.faults {
		if f.Line == at.line && f.Column == at.column {
			return true
		}
	}
	return false
}

var paths = map[string]string{
	"Name": "name", "Model": "model", "Instruction": "instruction", "GenerateContentConfig": "generate_content_config",
	"IncludeContents": "include_contents", "OutputKey": "output_key", "OutputSchema": "output_schema", "Limits": "toolfabric.limits",
}

func pathOf(field string) string {
	if rest, ok := strings.CutPrefix(field, "Tools"); ok {
		return "tools" + rest + ".name"
	}
	if rest, ok := strings.CutPrefix(field, "SubAgents"); ok {
		return "sub_agents" + rest
	}
	return paths[field]
}

func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func public(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Public
	}
	return err.Error()
}
