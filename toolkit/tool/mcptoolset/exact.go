package mcptoolset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
)

// exactKey is the key of a result's _meta under which its structured content travels through the SDK as text. The SDK decodes
// numbers into float64, which loses digits of large ones.
const exactKey = "toolfabric/structured"

// exact is a result with its structured content beside as text, and without what the SDK could not decode: one block of a kind
// that it does not know would cost the whole answer. Other results are as they were.
func exact(result json.RawMessage) json.RawMessage {
	if !bytes.Contains(result, []byte(`"structuredContent"`)) && !bytes.Contains(result, []byte(`"content"`)) {
		return result
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil {
		return result
	}
	changed := known(fields)
	if structured := fields["structuredContent"]; len(structured) > 0 {
		changed = aside(fields, structured) || changed
	}
	if !changed {
		return result
	}
	out, err := protocol.Encode(fields)
	if err != nil {
		return result
	}
	return out
}

// aside puts structured content into the result's _meta as text.
func aside(fields map[string]json.RawMessage, structured json.RawMessage) bool {
	meta := map[string]json.RawMessage{}
	if raw := fields["_meta"]; len(raw) > 0 && json.Unmarshal(raw, &meta) != nil {
		return false
	}
	text, err := protocol.Encode(string(structured))
	if err != nil {
		return false
	}
	if meta == nil { // _meta was null
		meta = map[string]json.RawMessage{}
	}
	meta[exactKey] = text
	raw, err := protocol.Encode(meta)
	if err == nil {
		fields["_meta"] = raw
	}
	return err == nil
}

// known names blocks of content that the SDK does not know, in their place.
func known(fields map[string]json.RawMessage) (changed bool) {
	var blocks []json.RawMessage
	if json.Unmarshal(fields["content"], &blocks) != nil {
		return false
	}
	for i, raw := range blocks {
		var b struct{ Type string }
		if json.Unmarshal(raw, &b) == nil && slices.Contains(kinds, b.Type) {
			continue
		}
		text, _ := json.Marshal(map[string]string{"type": "text", "text": fmt.Sprintf("[a block of the unknown type %q and %d bytes is left out]", clip(seen(b.Type), 40), len(raw))})
		blocks[i], changed = text, true
	}
	if changed {
		raw, err := protocol.Encode(blocks)
		if err != nil {
			return false
		}
		fields["content"] = raw
	}
	return changed
}

// kinds are the blocks of a tool's result that the SDK decodes.
var kinds = []string{"text", "image", "audio", "resource_link", "resource"}

// exactMessage is exact for the result of a whole JSON-RPC message.
func exactMessage(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"structuredContent"`)) && !bytes.Contains(message, []byte(`"content"`)) {
		return message
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(message, &fields) != nil || len(fields["result"]) == 0 {
		return message
	}
	result := exact(fields["result"])
	if bytes.Equal(result, fields["result"]) {
		return message
	}
	fields["result"] = result
	out, err := protocol.Encode(fields)
	if err != nil {
		return message
	}
	return out
}
