package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// Entry is one event of a log with what the broker knows about it.
type Entry struct {
	Seq   uint64         `json:"seq"`  // stream sequence
	Time  time.Time      `json:"time"` // JetStream timestamp
	Event protocol.Event `json:"event"`
}

// Content reads content of the wire. Numbers in arguments and responses stay json.Number, so that none loses a digit;
// nil for nothing or for what is no content.
func Content(raw json.RawMessage) *genai.Content {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var c genai.Content
	if dec.Decode(&c) != nil {
		return nil
	}
	return &c
}

// Text is what content says, without the model's thoughts.
func Text(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range c.Parts {
		if p != nil && !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Said is all that a turn says, the after-callback's word behind the model's.
func Said(t *protocol.Turn) string {
	text, after := Text(Content(t.Content)), Text(Content(t.After))
	if text != "" && after != "" {
		return text + "\n" + after
	}
	return text + after
}

func object(raw json.RawMessage) map[string]any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var m map[string]any
	if dec.Decode(&m) != nil {
		return nil
	}
	return m
}

func values(raw map[string]json.RawMessage) map[string]any {
	if len(raw) == 0 {
		return nil
	}
	m := make(map[string]any, len(raw))
	for k, v := range raw {
		m[k] = value(v)
	}
	return m
}

// value reads any JSON; nil for nothing or for what is none.
func value(raw json.RawMessage) any {
	tree, err := protocol.Tree(raw)
	if err != nil {
		return nil
	}
	return tree
}

func millis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
