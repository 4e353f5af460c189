package llmagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Instructions is what the model is told before the conversation: the global instruction of root, the agent's tree, then the
// agent's own, each with its templates filled from ctx's state, then who it is. A nil root is the agent itself. It returns an *Error of code model_failed that names the key when
// a required one has no value, or with a provider's error as its cause.
func (a *LLMAgent) Instructions(ctx agent.ReadonlyContext, root *LLMAgent) (string, error) {
	if root == nil {
		root = a
	}
	var parts []string
	for _, part := range []struct {
		field, text string
		provider    InstructionProvider
	}{
		{"global instruction", root.cfg.GlobalInstruction, root.cfg.GlobalInstructionProvider},
		{"instruction", a.cfg.Instruction, a.cfg.InstructionProvider},
	} {
		var s string
		var err error
		if part.provider != nil {
			s, err = part.provider(ctx)
		} else {
			s, err = fill(part.text, ctx.ReadonlyState())
		}
		if err != nil {
			return "", protocol.Wrap(err, protocol.CodeModelFailed, "agent %s: the %s cannot be made: %s", a.Name(), part.field, text(err))
		}
		if s != "" {
			parts = append(parts, s)
		}
	}
	parts = append(parts, a.identity())
	return strings.Join(parts, "\n\n"), nil
}

func (a *LLMAgent) identity() string {
	s := fmt.Sprintf("You are an agent. Your internal name is %q.", a.Name())
	if d := a.Description(); d != "" {
		s += fmt.Sprintf(" The description about you is %q.", d)
	}
	return s
}

// Any number of braces on both sides belongs to one placeholder, as in ADK.
var placeholder = regexp.MustCompile(`\{+[^{}]*\}+`)

const artifactPrefix = "artifact."

// fill puts state values into a template. A string is put in as it is, null as nothing, another value as its JSON.
func fill(template string, state session.ReadonlyState) (string, error) {
	if !strings.Contains(template, "{") {
		return template, nil
	}
	var failed error
	filled := placeholder.ReplaceAllStringFunc(template, func(match string) string {
		key, optional := placeholderKey(match)
		if !isStateName(key) || failed != nil {
			return match
		}
		value, err := state.Get(key)
		switch {
		case errors.Is(err, session.ErrStateKeyNotExist) && optional:
			return ""
		case errors.Is(err, session.ErrStateKeyNotExist):
			failed = fmt.Errorf("state has no key %q: set it before the run or write {%s?}", key, key)
			return ""
		case err != nil:
			failed = fmt.Errorf("state key %q: %w", key, err)
			return ""
		}
		s, err := show(value)
		if err != nil {
			failed = fmt.Errorf("state key %q: %w", key, err)
		}
		return s
	})
	return filled, failed
}

func checkTemplate(template string) error {
	for _, match := range placeholder.FindAllString(template, -1) {
		if key, _ := placeholderKey(match); strings.HasPrefix(key, artifactPrefix) {
			return protocol.Errorf(protocol.CodeUnsupported, "%s: artifacts are not available in this version", match)
		}
	}
	return nil
}

func placeholderKey(match string) (key string, optional bool) {
	return strings.CutSuffix(strings.TrimSpace(strings.Trim(match, "{}")), "?")
}

// isStateName reports whether s is an identifier, perhaps with one of the prefixes of state keys.
func isStateName(s string) bool {
	for _, prefix := range []string{session.KeyPrefixApp, session.KeyPrefixUser, session.KeyPrefixTemp} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			s = rest
			break
		}
	}
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}

func show(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	}
	b, err := json.Marshal(value)
	return string(b), err
}
