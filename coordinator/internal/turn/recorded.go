package turn

import (
	"encoding/json"
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// Decision is a turn to record, and what History will read in it.
type Decision struct {
	protocol.Turn
	read *genai.Content // nil when only the recorded bytes tell
}

// recorded is what decode makes of c once it is encoded, made without the way through its bytes; it shares nothing with c
// that can be changed. It is nil for a content with anything but text, thoughts and calls, or with values that are not
// themselves when they come back.
func recorded(c *genai.Content) *genai.Content {
	read := &genai.Content{Role: c.Role, Parts: make([]*genai.Part, len(c.Parts))}
	for i, p := range c.Parts {
		if !isPlain(p) || !utf8.ValidString(p.Text) {
			return nil
		}
		q := &genai.Part{Text: p.Text, Thought: p.Thought}
		if len(p.ThoughtSignature) > 0 {
			q.ThoughtSignature = append([]byte(nil), p.ThoughtSignature...)
		}
		if f := p.FunctionCall; f != nil {
			if !utf8.ValidString(f.ID) || !utf8.ValidString(f.Name) || f.PartialArgs != nil || f.WillContinue != nil {
				return nil
			}
			q.FunctionCall = &genai.FunctionCall{ID: f.ID, Name: f.Name}
			if len(f.Args) > 0 {
				args, ok := recordedValue(f.Args)
				if !ok {
					return nil
				}
				q.FunctionCall.Args = args.(map[string]any)
			}
		}
		read.Parts[i] = q
	}
	return read
}

// isPlain reports whether a part has none of the fields that recorded leaves out.
func isPlain(p *genai.Part) bool {
	return p.MediaResolution == nil && p.CodeExecutionResult == nil && p.ExecutableCode == nil && p.FileData == nil &&
		p.FunctionResponse == nil && p.InlineData == nil && p.VideoMetadata == nil && p.ToolCall == nil && p.ToolResponse == nil &&
		p.PartMetadata == nil && p.AudioTranscription == nil && p.MediaProcessing == "" && p.SpeechMetadata == nil
}

func recordedValue(v any) (any, bool) {
	switch v := v.(type) {
	case nil, bool:
		return v, true
	case string:
		return v, utf8.ValidString(v)
	case json.Number:
		return v, v != ""
	case map[string]any:
		if v == nil {
			return nil, true
		}
		read := make(map[string]any, len(v))
		for key, element := range v {
			e, ok := recordedValue(element)
			if !ok || !utf8.ValidString(key) {
				return nil, false
			}
			read[key] = e
		}
		return read, true
	case []any:
		if v == nil {
			return nil, true
		}
		read := make([]any, len(v))
		for i, element := range v {
			e, ok := recordedValue(element)
			if !ok {
				return nil, false
			}
			read[i] = e
		}
		return read, true
	}
	return nil, false
}
