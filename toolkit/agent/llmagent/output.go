package llmagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// output is a compiled output schema.
type output struct {
	schema   json.RawMessage
	compiled *jsonschema.Schema
}

// OutputSchema is the JSON Schema of a final answer; nil when it may be any text.
func (a *LLMAgent) OutputSchema() json.RawMessage {
	if a.output == nil {
		return nil
	}
	return a.output.schema
}

// ParseOutput reads a final answer as JSON, in a Markdown code fence or not, and checks it against the output schema. It
// returns an *Error of code model_failed that names the place of the fault. It must not be called without a schema.
func (a *LLMAgent) ParseOutput(answer string) (json.RawMessage, error) {
	raw := []byte(unfence(answer))
	if err := protocol.Check(raw, protocol.MessageLimits); err != nil {
		return nil, protocol.Wrap(err, protocol.CodeModelFailed, "agent %s: the model's answer is not JSON as its output schema asks: %s", a.Name(), text(err))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		err = a.output.compiled.Validate(value)
	}
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeModelFailed, "agent %s: the model's answer does not fit its output schema: %s", a.Name(), describe(err))
	}
	return json.RawMessage(raw), nil
}

func unfence(s string) string {
	s = strings.TrimSpace(s)
	body, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	body, ok = strings.CutSuffix(body, "```")
	if !ok {
		return s
	}
	if _, rest, ok := strings.Cut(body, "\n"); ok { // the language's name
		return strings.TrimSpace(rest)
	}
	return strings.TrimSpace(body)
}

// describe is the validator's finding on one line: its first line only names the schema's place in memory.
func describe(err error) string {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err.Error()
	}
	_, lines, found := strings.Cut(invalid.Error(), "\n")
	if !found {
		return invalid.Error()
	}
	list := strings.Split(lines, "\n")
	for i, line := range list {
		list[i] = strings.TrimPrefix(strings.TrimSpace(line), "- ")
	}
	return strings.Join(list, "; ")
}

func compileOutput(cfg *Config) (*output, error) {
	schema := cfg.OutputJSONSchema
	switch {
	case cfg.OutputSchema == nil && len(schema) == 0:
		return nil, nil
	case cfg.OutputSchema != nil && len(schema) > 0:
		return nil, errors.New("set it or OutputJSONSchema, not both")
	case cfg.OutputSchema != nil:
		converted, err := jsonSchema(cfg.OutputSchema)
		if err != nil {
			return nil, err
		}
		if schema, err = json.Marshal(converted); err != nil {
			return nil, err
		}
	}
	if len(schema) > protocol.MaxSchema {
		return nil, fmt.Errorf("the schema has %d bytes, more than %d", len(schema), protocol.MaxSchema)
	}
	if err := protocol.Check(schema, protocol.MessageLimits); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	const url = "urn:output-schema"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(url)
	if err != nil {
		if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
			err = errors.New(describe(invalid.Err))
		}
		return nil, fmt.Errorf("the schema does not compile: %w", err)
	}
	return &output{schema: schema, compiled: compiled}, nil
}

// noLoader refuses references that leave the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: references to other documents are not followed", url)
}

// jsonSchema writes genai's OpenAPI dialect as JSON Schema: types in lower case, nullable as a type, the rest by the same
// names.
func jsonSchema(s *genai.Schema) (map[string]any, error) {
	plain := *s
	plain.Type, plain.Nullable, plain.Items, plain.AnyOf, plain.Properties = "", nil, nil, nil, nil
	plain.PropertyOrdering, plain.Example = nil, nil
	b, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	if t := strings.ToLower(string(s.Type)); t != "" && s.Type != genai.TypeUnspecified {
		out["type"] = t
		if s.Nullable != nil && *s.Nullable {
			out["type"] = []string{t, "null"}
		}
	}
	if s.Items != nil {
		if out["items"], err = jsonSchema(s.Items); err != nil {
			return nil, err
		}
	}
	if len(s.AnyOf) > 0 {
		list := make([]any, len(s.AnyOf))
		for i, alternative := range s.AnyOf {
			if list[i], err = jsonSchema(alternative); err != nil {
				return nil, err
			}
		}
		out["anyOf"] = list
	}
	if len(s.Properties) > 0 {
		properties := make(map[string]any, len(s.Properties))
		for name, property := range s.Properties {
			if properties[name], err = jsonSchema(property); err != nil {
				return nil, err
			}
		}
		out["properties"] = properties
	}
	return out, nil
}
