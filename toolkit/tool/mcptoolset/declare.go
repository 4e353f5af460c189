package mcptoolset

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// declare makes a tool of the fabric of one of the server's. Its error says why it cannot be offered.
func (s *set) declare(r *mcp.Tool) (tool.Tool, error) {
	own := r.Name
	if s.cfg.Prefix != "" {
		own = s.cfg.Prefix + "_" + r.Name
	}
	t := &remote{set: s, name: own, own: r.Name, settings: s.settings(r)}
	t.decl = &genai.FunctionDeclaration{Name: own, Description: describe(r)}
	if r.InputSchema != nil {
		t.decl.ParametersJsonSchema = r.InputSchema
	}
	if output, err := json.Marshal(r.OutputSchema); r.OutputSchema != nil && err == nil {
		if _, err := invoke.CompileOutput(output); err == nil && len(output) < protocol.MaxSchema/2 {
			t.decl.ResponseJsonSchema = json.RawMessage(output)
		}
	}
	var named tool.Tool = t
	if protocol.CheckName(own) != nil {
		named = tool.ToolWithName(t, own)
	}
	if s.cfg.RequireConfirmation || s.cfg.RequireConfirmationProvider != nil {
		named = tool.ToolWithConfirmation(named, s.cfg.RequireConfirmation, s.cfg.RequireConfirmationProvider)
	}
	it, err := invoke.New(named)
	if err != nil {
		return nil, fmt.Errorf("%s", protocol.ProblemOf(err).Message)
	}
	t.schema = it.Schema()
	return named, nil
}

// describe is what a model reads of the tool: bounded, and without what would hide or turn text.
func describe(r *mcp.Tool) string {
	text := r.Description
	if strings.TrimSpace(text) == "" {
		text = r.Title
	}
	if strings.TrimSpace(text) == "" {
		text = "The tool " + r.Name + " of an MCP server, which does not describe it."
	}
	return clip(seen(text), protocol.MaxDescription-256) // an alias adds the tool's own name
}

// settings are those of the configuration with what the server's hints may change.
func (s *set) settings(r *mcp.Tool) tool.Settings {
	set := s.cfg.Settings
	hints := r.Annotations
	if hints == nil {
		hints = &mcp.ToolAnnotations{}
	}
	destructive := hints.DestructiveHint != nil && *hints.DestructiveHint && !hints.ReadOnlyHint
	if effect, ok := s.cfg.Effects[r.Name]; ok && effect != "" {
		set.Effect = effect
	} else {
		set.Effect = class(set.Effect, hints, destructive, s.cfg.Trust)
	}
	// A provider replaces the flag: see tool.ToolWithConfirmation.
	if destructive && !s.cfg.AllowDestructive && s.cfg.RequireConfirmationProvider == nil {
		set.Confirm = true
	}
	return set
}

// class is the effect class of a tool that is not named in the configuration. declared is that of all of the set's.
func class(declared tool.Effect, hints *mcp.ToolAnnotations, destructive, trust bool) tool.Effect {
	switch {
	case declared != "" && declared != tool.AtMostOnce && destructive && !hints.IdempotentHint:
		return tool.AtMostOnce // raised: what all of them are said to be, this one says it is not
	case declared != "":
		return declared
	case trust && hints.ReadOnlyHint:
		return tool.Read
	case trust && hints.IdempotentHint:
		return tool.Idempotent
	}
	return tool.AtMostOnce
}

// clip cuts a text at the end of a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "..."
}
