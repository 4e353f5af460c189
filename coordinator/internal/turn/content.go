package turn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// CheckMessage reports whether raw may be said to an agent: a content of role user (or none) with at least one part, none
// of which is a function call or response. Keys are compared exactly: whoever reads the log elsewhere must see what the
// model is told. It returns an *Error of code bad_message.
func CheckMessage(raw json.RawMessage) error {
	if err := protocol.Decode(raw, new(genai.Content), protocol.MessageLimits); err != nil {
		p := protocol.ProblemOf(err)
		return protocol.Wrap(err, p.Code, "content is not a genai.Content: %s; {\"role\":\"user\",\"parts\":[{\"text\":\"...\"}]} is one", p.Message)
	}
	c, err := decode(raw)
	if err != nil {
		return protocol.Wrap(err, protocol.CodeBadMessage, "content is not a genai.Content at /content: {\"role\":\"user\",\"parts\":[{\"text\":\"...\"}]} is one")
	}
	if c.Role != "" && c.Role != genai.RoleUser {
		return protocol.Errorf(protocol.CodeBadMessage, "role %q at /content/role: a message has the role user", c.Role)
	}
	for i, p := range c.Parts {
		if p != nil && (p.FunctionCall != nil || p.FunctionResponse != nil) {
			return protocol.Errorf(protocol.CodeBadMessage, "a message cannot hold a function call or response at /content/parts/%d: workers answer calls; toolfabric approvals decides what waits for a person, toolfabric calls complete gives a result", i)
		}
	}
	if len(plain(c.Parts)) == 0 {
		return protocol.Errorf(protocol.CodeBadMessage, "the message is empty at /content/parts: it needs text or data")
	}
	return nil
}

// decode reads a recorded content. Numbers in arguments stay json.Number: every digit counts.
func decode(raw json.RawMessage) (*genai.Content, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var c genai.Content
	if err := d.Decode(&c); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the content")
	}
	return &c, nil
}

// encode writes v as it is recorded: without the escapes that only HTML needs.
func encode(v any) (json.RawMessage, error) { return protocol.Encode(v) }

// full are the parts that carry anything. Providers refuse the others, a signature alone is one to keep.
func full(parts []*genai.Part) []*genai.Part {
	kept := make([]*genai.Part, 0, len(parts))
	for _, p := range parts {
		if p != nil && !isEmpty(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func isEmpty(p *genai.Part) bool {
	return p.Text == "" && len(p.ThoughtSignature) == 0 && p.FunctionCall == nil && p.FunctionResponse == nil &&
		p.InlineData == nil && p.FileData == nil && p.ExecutableCode == nil && p.CodeExecutionResult == nil &&
		p.ToolCall == nil && p.ToolResponse == nil && p.AudioTranscription == nil
}

// plain are the full parts that are neither function calls nor responses.
func plain(parts []*genai.Part) []*genai.Part {
	kept := full(parts)
	n := 0
	for _, p := range kept {
		if p.FunctionCall == nil && p.FunctionResponse == nil {
			kept[n] = p
			n++
		}
	}
	return kept[:n]
}

// functionCalls are the calls of a model's content, in order.
func functionCalls(c *genai.Content) []*genai.FunctionCall {
	var calls []*genai.FunctionCall
	for _, p := range c.Parts {
		if p != nil && p.FunctionCall != nil {
			calls = append(calls, p.FunctionCall)
		}
	}
	return calls
}

// answerText is what the model says: its text, thoughts left out.
func answerText(c *genai.Content) string {
	var b bytes.Buffer
	for _, p := range c.Parts {
		if !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// responseOf is a call's result as the model reads it. An object stands for itself; one that is empty, or whose own keys
// are those that providers read as output or error, is put below "result", since it would not arrive otherwise.
func responseOf(r protocol.Result) map[string]any {
	tree, err := protocol.Tree(r.Value)
	value, ok := tree.(map[string]any)
	if err != nil || !ok {
		return map[string]any{"error": fmt.Sprintf("the call ended as %s without a readable value", r.Outcome)}
	}
	if r.Outcome != protocol.OutcomeCompleted && value["error"] != nil {
		return value
	}
	_, output := value["output"]
	_, failure := value["error"]
	if output || failure || len(value) == 0 {
		return map[string]any{"result": value}
	}
	return value
}
