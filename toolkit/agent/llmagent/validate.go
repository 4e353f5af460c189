package llmagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// FieldError is one fault of a Config.
type FieldError struct {
	Field string // Go name of the field; an element is Tools[2]
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + text(e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

// text leaves out the code of an *Error: a reader of configuration needs the sentence.
func text(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Public
	}
	return err.Error()
}

func validate(cfg *Config) (*output, error) {
	var faults []error
	fault := func(field string, err error) {
		if err != nil {
			faults = append(faults, &FieldError{Field: field, Err: err})
		}
	}
	fault("Name", protocol.CheckName(cfg.Name))
	if cfg.Model == nil {
		fault("Model", errors.New("an agent needs a model"))
	}
	fault("Instruction", checkTemplate(cfg.Instruction))
	fault("GlobalInstruction", checkTemplate(cfg.GlobalInstruction))
	if cfg.Instruction != "" && cfg.InstructionProvider != nil {
		fault("InstructionProvider", errors.New("set it or Instruction, not both"))
	}
	if cfg.GlobalInstruction != "" && cfg.GlobalInstructionProvider != nil {
		fault("GlobalInstructionProvider", errors.New("set it or GlobalInstruction, not both"))
	}
	fault("GenerateContentConfig", checkGenerate(cfg.GenerateContentConfig))
	switch cfg.IncludeContents {
	case IncludeContentsDefault, IncludeContentsNone:
	default:
		fault("IncludeContents", fmt.Errorf("%q: it is default or none", cfg.IncludeContents))
	}
	fault("OutputKey", checkOutputKey(cfg.OutputKey))
	out, err := compileOutput(cfg)
	fault("OutputSchema", err)
	seen := map[string]int{}
	for i, t := range cfg.Tools {
		field := fmt.Sprintf("Tools[%d]", i)
		if t == nil {
			fault(field, errors.New("the tool is nil"))
			continue
		}
		fault(field, protocol.CheckName(t.Name()))
		if first, twice := seen[t.Name()]; twice {
			fault(field, fmt.Errorf("duplicate tool: %q is listed before as Tools[%d]", t.Name(), first))
			continue
		}
		seen[t.Name()] = i
		if t.Name() == TransferTool {
			fault(field, errors.New("the fabric offers a tool of this name itself, to agents that have others to hand over to"))
		}
	}
	checkSubAgents(cfg, fault)
	for i, s := range cfg.Toolsets {
		if s == nil {
			fault(fmt.Sprintf("Toolsets[%d]", i), errors.New("the toolset is nil"))
		}
	}
	for field, list := range callbackFields(cfg) {
		for i := range list.Len() {
			if list.Index(i).IsNil() {
				fault(fmt.Sprintf("%s[%d]", field, i), errors.New("the callback is nil"))
			}
		}
	}
	if l := cfg.Limits; l.ModelCalls < 0 || l.CallsPerTurn < 0 || l.WallTime < 0 {
		fault("Limits", errors.New("a limit is not negative; 0 is the default"))
	}
	return out, errors.Join(faults...)
}

// checkSubAgents wants every name once in the tree. An agent is made after those below it, so that no tree has a loop.
func checkSubAgents(cfg *Config, fault func(field string, err error)) {
	seen := map[string]bool{cfg.Name: true}
	var taken func(a agent.Agent) string
	taken = func(a agent.Agent) string {
		if seen[a.Name()] {
			return a.Name()
		}
		seen[a.Name()] = true
		for _, sub := range a.SubAgents() {
			if name := taken(sub); name != "" {
				return name
			}
		}
		return ""
	}
	for i, a := range cfg.SubAgents {
		field := fmt.Sprintf("SubAgents[%d]", i)
		if a == nil {
			fault(field, errors.New("the sub-agent is nil"))
		} else if name := taken(a); name != "" {
			fault(field, fmt.Errorf("agent %s appears twice in the tree: names are how agents hand over, so each needs its own", name))
		}
	}
}

func checkGenerate(c *genai.GenerateContentConfig) error {
	switch {
	case c == nil:
		return nil
	case c.SystemInstruction != nil:
		return errors.New("the system instruction is set by Instruction")
	case len(c.Tools) > 0:
		return errors.New("tools are set by Tools")
	case c.ResponseSchema != nil || c.ResponseJsonSchema != nil:
		return errors.New("the response schema is set by OutputSchema")
	case c.CandidateCount > 1:
		return errors.New("one answer is recorded per request: more than one candidate is not supported")
	}
	if _, err := json.Marshal(c); err != nil {
		return fmt.Errorf("it cannot be encoded: %w", err)
	}
	return nil
}

func checkOutputKey(key string) error {
	if key == "" {
		return nil
	}
	if strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser) {
		return protocol.Errorf(protocol.CodeUnsupported, "%q: state of an app or user is not available in this version; use a key without prefix", key)
	}
	if !isStateName(key) {
		return fmt.Errorf("%q: a state key is a letter or _ and then letters, digits and _", key)
	}
	return nil
}
