package mcptoolset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// maxAnswer is how large an answer may be that goes inline; of a larger one a view does. In bytes of JSON.
const (
	maxAnswer = protocol.MaxInlineResult - 16<<10
	viewPart  = 16 << 10 // of head and tail each
)

// block is one part of a server's answer that is no plain text.
type block struct {
	Type     string        `json:"type"` // image, audio, resource or link
	URI      string        `json:"uri,omitempty"`
	Name     string        `json:"name,omitempty"`
	Title    string        `json:"title,omitempty"`
	About    string        `json:"description,omitempty"`
	MIMEType string        `json:"mime_type,omitempty"`
	Text     *string       `json:"text,omitempty"`
	Size     *int64        `json:"size,omitempty"`   // in bytes
	SHA256   string        `json:"sha256,omitempty"` // of the bytes
	Ref      *protocol.Ref `json:"ref,omitempty"`    // where they are
	Omitted  string        `json:"omitted,omitempty"`
}

// answer is a server's result as a model reads it; an error when the server says that it is one.
func (s *set) answer(ctx tool.Context, res *mcp.CallToolResult) (json.RawMessage, error) {
	var texts []string
	var blocks []block
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		} else {
			blocks = append(blocks, represent(ctx, c))
		}
	}
	text := strings.ToValidUTF8(strings.Join(texts, ""), "\uFFFD")
	structured, err := structured(res)
	if err != nil {
		return nil, err
	}
	if res.IsError {
		return nil, failure(text, structured, blocks)
	}
	parts := map[string]any{}
	if structured != nil {
		parts["structured"] = structured
	}
	if structured == nil && len(blocks) == 0 || text != "" && !says(structured, text) {
		parts["text"] = text
	}
	if len(blocks) > 0 {
		parts["content"] = blocks
	}
	var output any = parts
	if len(parts) == 1 && len(blocks) == 0 {
		for _, only := range parts {
			output = only
		}
	}
	whole, err := protocol.Encode(map[string]any{"output": output})
	if err != nil {
		return nil, fmt.Errorf("the server's answer cannot be written as JSON: %w", err)
	}
	if len(whole) <= maxAnswer {
		return whole, nil
	}
	return view(ctx, whole, blocks)
}

// structured is the structured content with every digit; nil when there is none.
func structured(res *mcp.CallToolResult) (json.RawMessage, error) {
	if res.StructuredContent == nil {
		return nil, nil
	}
	if text, ok := res.Meta[exactKey].(string); ok {
		return json.RawMessage(text), nil
	}
	return protocol.Encode(res.StructuredContent)
}

// failure is what a model reads of a result that the server calls an error: ADK's words and all that the server said.
func failure(text string, structured json.RawMessage, blocks []block) error {
	if structured != nil && !says(structured, text) {
		text = strings.TrimSpace(text + "\n" + string(structured))
	}
	if len(blocks) > 0 {
		raw, _ := json.Marshal(blocks)
		text = strings.TrimSpace(text + "\n" + string(raw))
	}
	if text == "" {
		return errors.New("Tool execution failed.")
	}
	return errors.New("Tool execution failed. Details: " + clip(text, maxErrorText))
}

// represent keeps the bytes of a block out of the answer.
func represent(ctx tool.Context, c mcp.Content) block {
	switch c := c.(type) {
	case *mcp.ImageContent:
		return kept(ctx, block{Type: "image", MIMEType: c.MIMEType}, c.Data)
	case *mcp.AudioContent:
		return kept(ctx, block{Type: "audio", MIMEType: c.MIMEType}, c.Data)
	case *mcp.ResourceLink:
		return block{Type: "link", URI: c.URI, Name: c.Name, Title: c.Title, About: c.Description, MIMEType: c.MIMEType, Size: c.Size}
	case *mcp.EmbeddedResource:
		if c.Resource == nil {
			return block{Type: "resource", Omitted: "the server sent no resource"}
		}
		b := block{Type: "resource", URI: c.Resource.URI, MIMEType: c.Resource.MIMEType}
		if c.Resource.Blob != nil {
			return kept(ctx, b, c.Resource.Blob)
		}
		text := strings.ToValidUTF8(c.Resource.Text, "\uFFFD")
		b.Text = &text
		return b
	}
	return block{Type: strings.TrimPrefix(fmt.Sprintf("%T", c), "*mcp."), Omitted: "this kind of content does not belong into a tool's result"}
}

// kept puts data into the fabric's object store.
func kept(ctx tool.Context, b block, data []byte) block {
	size := int64(len(data))
	sum := sha256.Sum256(data)
	b.Size, b.SHA256 = &size, hex.EncodeToString(sum[:])
	if b.MIMEType == "" {
		b.MIMEType = "application/octet-stream"
	}
	ref, err := keep(ctx, data, b.MIMEType)
	if err != nil {
		b.Omitted = "its bytes could not be kept: " + protocol.ProblemOf(err).Message
		return b
	}
	b.Ref = &ref
	return b
}

func keep(ctx tool.Context, data []byte, mediaType string) (protocol.Ref, error) {
	k, ok := ctx.(tool.Keeper)
	if !ok {
		return protocol.Ref{}, protocol.Errorf(protocol.CodeUnsupported, "no object store is connected here")
	}
	return k.Keep(data, mediaType)
}

// view stands for an answer that is too large to go inline: its beginning and end, and where the whole is.
func view(ctx tool.Context, whole json.RawMessage, blocks []block) (json.RawMessage, error) {
	out := map[string]any{
		"truncated": true, "size": len(whole),
		"excerpt": clipEnds(string(whole), viewPart),
		"note":    "the answer was too large to show: this is the beginning and the end of its JSON",
	}
	ref, err := keep(ctx, whole, "application/json")
	if err != nil {
		out["omitted"] = "the whole could not be kept: " + protocol.ProblemOf(err).Message
	} else {
		out["ref"] = ref
	}
	if raw, err := json.Marshal(blocks); len(blocks) > 0 && err == nil && len(raw) < viewPart {
		out["content"] = json.RawMessage(raw)
	}
	return protocol.Encode(map[string]any{"output": out})
}

// clipEnds is the first and the last part of a text, each of about so many bytes.
func clipEnds(text string, part int) string {
	if len(text) <= 2*part {
		return text
	}
	return strings.ToValidUTF8(text[:part], "") + " ... " + strings.ToValidUTF8(text[len(text)-part:], "")
}

// says reports whether text adds nothing to structured content: it is the same JSON, as the protocol wants it, or one of its
// fields.
func says(structured json.RawMessage, text string) bool {
	if structured == nil {
		return false
	}
	if sameJSON([]byte(text), structured) {
		return true
	}
	var fields map[string]any
	if json.Unmarshal(structured, &fields) != nil {
		return false
	}
	for _, v := range fields {
		if v == text {
			return true
		}
	}
	return false
}

// sameJSON reports whether two texts are the same JSON document but for white space and the order of keys. Numbers are
// compared as they are written.
func sameJSON(a, b []byte) bool {
	left, ok := decoded(a)
	right, too := decoded(b)
	return ok && too && left == right
}

func decoded(text []byte) (string, bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return "", false
	}
	out, err := json.Marshal(v)
	return string(out), err == nil
}
