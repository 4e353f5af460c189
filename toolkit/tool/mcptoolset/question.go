package mcptoolset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// Limits of a question, in bytes. Those of a confirmation are a little wider.
const (
	maxMessage = 3 << 10
	maxSchema  = 32 << 10
)

// Shown is the payload of the confirmation that a server's question becomes.
type Shown struct {
	Server  string          `json:"server"`
	Message string          `json:"message"`
	URL     string          `json:"url,omitempty"`              // to be opened by the person; there is no content then
	Schema  json.RawMessage `json:"requested_schema,omitempty"` // of the payload that a person agrees with
}

// Show is a server's question as a person is asked it: the hint and the payload of a confirmation. toolName is empty when
// it is not known which call led to it. complaint says what was wrong
// with the answer before; empty is nothing. The error says why the question cannot be asked.
func Show(server, toolName string, q *mcp.ElicitParams, complaint string) (hint string, shown Shown, err error) {
	shown = Shown{Server: server, Message: clip(seen(q.Message), maxMessage), URL: q.URL}
	if q.RequestedSchema != nil {
		if shown.Schema, err = json.Marshal(q.RequestedSchema); err != nil {
			return "", shown, fmt.Errorf("the schema of the MCP server's question: %w", err)
		}
		if len(shown.Schema) > maxSchema {
			return "", shown, fmt.Errorf("the schema of the MCP server's question has %d bytes, more than %d", len(shown.Schema), maxSchema)
		}
		if _, err := invoke.CompileSchema(shown.Schema); err != nil {
			return "", shown, fmt.Errorf("the schema of the MCP server's question: %s", protocol.ProblemOf(err).Message)
		}
	}
	var b strings.Builder
	if complaint != "" {
		fmt.Fprintf(&b, "The answer does not fit: %s\n", clip(complaint, 512))
	}
	fmt.Fprintf(&b, "The MCP server %s asks", server)
	if toolName != "" {
		fmt.Fprintf(&b, " in a call of %s", toolName)
	}
	fmt.Fprintf(&b, ": %s", shown.Message)
	if shown.URL != "" {
		if len(shown.URL) > 2<<10 || !strings.HasPrefix(shown.URL, "https://") && !strings.HasPrefix(shown.URL, "http://") {
			return "", shown, errors.New("the MCP server wants a person to open something that is no short http or https URL")
		}
		shown.URL = seen(shown.URL)
	}
	return clip(b.String(), 4000), shown, nil
}

// Answer is a person's word as the server wants it: accept with the payload as content, which fits the requested schema, or
// decline. A payload that is what was shown is none. The error says what does not fit.
func Answer(q *mcp.ElicitParams, word *toolconfirmation.ToolConfirmation) (*mcp.ElicitResult, error) {
	switch {
	case word == nil || !word.Confirmed:
		return &mcp.ElicitResult{Action: "decline"}, nil
	case q.URL != "":
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	raw, err := invoke.Encode(word.Payload)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if string(raw) != "null" {
		if err := json.Unmarshal(raw, &content); err != nil {
			return nil, errors.New("the payload is to be a JSON object")
		}
	}
	if content == nil || echoed(content) {
		content = map[string]any{}
	}
	if q.RequestedSchema == nil {
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}
	text, err := json.Marshal(q.RequestedSchema)
	if err != nil {
		return nil, err
	}
	schema, err := invoke.CompileSchema(text)
	if err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(content); err != nil {
		return nil, err
	}
	if raw, err = schema.Normalize(raw); err != nil {
		return nil, err
	}
	content = map[string]any{}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

// echoed reports whether a payload is what Show shows: a person who agrees without more sends it back as it came.
func echoed(content map[string]any) bool {
	_, server := content["server"].(string)
	_, message := content["message"].(string)
	keys := 2
	for _, more := range []string{"url", "requested_schema"} {
		if _, ok := content[more]; ok {
			keys++
		}
	}
	return server && message && len(content) == keys
}
