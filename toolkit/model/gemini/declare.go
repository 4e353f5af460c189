package gemini

import (
	"errors"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// declare turns the declarations into what Gemini accepts and notes each one's schema. A tool that cannot be declared is
// left out, so that it does not take the others down with it.
func (m *llm) declare(tools []*genai.Tool, choice *genai.ToolConfig, schemas map[string]schema) ([]*genai.Tool, *genai.ToolConfig) {
	var out []*genai.Tool
	for _, t := range tools {
		if t == nil {
			continue
		}
		tool := *t
		tool.FunctionDeclarations = nil
		for _, d := range t.FunctionDeclarations {
			decl, s, err := declaration(d)
			if err == nil && d != nil {
				if _, twice := schemas[d.Name]; twice {
					err = errors.New("the name is declared twice")
				}
			}
			if err != nil {
				name := ""
				if d != nil {
					name = d.Name
				}
				m.cfg.Logger.Warn("a tool is left out of the model request", "tool", name, "reason", err)
				continue
			}
			schemas[d.Name] = s
			tool.FunctionDeclarations = append(tool.FunctionDeclarations, decl)
		}
		if len(t.FunctionDeclarations) == 0 || len(tool.FunctionDeclarations) > 0 {
			out = append(out, &tool)
		}
	}
	if choice == nil || choice.FunctionCallingConfig == nil || len(choice.FunctionCallingConfig.AllowedFunctionNames) == 0 {
		return out, choice
	}
	config, calling := *choice, *choice.FunctionCallingConfig
	calling.AllowedFunctionNames = nil
	for _, name := range choice.FunctionCallingConfig.AllowedFunctionNames {
		if _, ok := schemas[name]; ok {
			calling.AllowedFunctionNames = append(calling.AllowedFunctionNames, name)
		}
	}
	config.FunctionCallingConfig = &calling
	return out, &config
}

func declaration(d *genai.FunctionDeclaration) (*genai.FunctionDeclaration, schema, error) {
	if d == nil {
		return nil, nil, errors.New("the declaration is empty")
	}
	if err := protocol.CheckName(d.Name); err != nil {
		return nil, nil, err
	}
	out := *d
	if d.ParametersJsonSchema == nil {
		return &out, schema{}, nil
	}
	s, err := expand(d.ParametersJsonSchema)
	if err != nil {
		return nil, nil, err
	}
	if s["type"] != "object" {
		return nil, nil, errors.New("its parameters are no object")
	}
	out.Parameters, out.ParametersJsonSchema = nil, map[string]any(s.textual())
	if d.ResponseJsonSchema != nil {
		out.Response, out.ResponseJsonSchema = nil, nil
		if s, err := expand(d.ResponseJsonSchema); err == nil {
			out.ResponseJsonSchema = map[string]any(s.textual())
		}
	}
	return &out, s, nil
}
