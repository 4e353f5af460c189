package turn

import (
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// retold is what other agents than its own are told of a content, and which form of the content that was made of.
type retold struct{ of, as *genai.Content }

// ContentsFor is Contents as agent is shown them: what it said and was answered is its own, what other agents said and were
// answered is told by a user, for context. Their thoughts are left out, and their contents that hold nothing else. A content
// that no agent is named for is everybody's own.
func (h *History) ContentsFor(agent string, open []protocol.Answer, runOnly bool) ([]*genai.Content, error) {
	contents, from, end, err := h.conversation(open, runOnly)
	if err != nil || !slices.ContainsFunc(h.speakers, func(s string) bool { return s != agent }) {
		return contents, err
	}
	kept := contents[:0]
	for k, c := range contents {
		at := from + k
		switch {
		case at < end && isForeign(h.authors[at], agent):
			c = h.retell(at, c)
		case at == end && h.open != nil && isForeign(h.open.agent, agent):
			c = retell(c, h.open.agent)
		}
		if c != nil {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

func isForeign(author, agent string) bool { return author != "" && author != agent }

// retell is what is told of the content at a place, which c is the form of to tell. What is told of those that stand in the
// conversation is kept.
func (h *History) retell(at int, c *genai.Content) *genai.Content {
	if c != h.contents[at] {
		return retell(c, h.authors[at])
	}
	for len(h.retold) <= at {
		h.retold = append(h.retold, retold{})
	}
	if h.retold[at].of != c {
		h.retold[at] = retold{of: c, as: retell(c, h.authors[at])}
		h.size += allowance
		for _, p := range c.Parts {
			h.size += len(p.Text)
		}
	}
	return h.retold[at].as
}

// retell makes a content of an agent's, or of the responses to its calls, a user's account of it, in ADK's words. It is nil
// when there is nothing to tell.
func retell(c *genai.Content, agent string) *genai.Content {
	parts := make([]*genai.Part, 1, 1+len(c.Parts))
	parts[0] = &genai.Part{Text: "For context:"}
	tell := func(words ...string) {
		parts = append(parts, &genai.Part{Text: "[" + agent + "] " + strings.Join(words, "")})
	}
	for _, p := range c.Parts {
		switch {
		case p.Thought:
		case p.FunctionCall != nil:
			tell("called tool `", p.FunctionCall.Name, "` with parameters: ", objectText(p.FunctionCall.Args))
		case p.FunctionResponse != nil:
			tell("`", p.FunctionResponse.Name, "` tool returned result: ", objectText(p.FunctionResponse.Response))
		case p.Text != "":
			tell("said: ", p.Text)
		default:
			other := *p
			other.ThoughtSignature = nil // it is the other model's
			if !isEmpty(&other) {
				parts = append(parts, &other)
			}
		}
	}
	if len(parts) == 1 {
		return nil
	}
	return &genai.Content{Role: genai.RoleUser, Parts: parts}
}

// objectText is an object as JSON. An empty response stands below "result" for providers only: see responseOf.
func objectText(m map[string]any) string {
	if inner, ok := m["result"].(map[string]any); ok && len(m) == 1 && len(inner) == 0 || len(m) == 0 {
		return "{}"
	}
	raw, err := encode(m)
	if err != nil {
		return "{}" // it was read from JSON
	}
	return string(raw)
}
