package scripted

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"google.golang.org/genai"
)

// answer is the rule's answer in chunks. The last chunk has the finish reason and the usage, as Gemini sends them.
func (r *rule) answer(s state, captures map[string]any) ([]Chunk, error) {
	data := s.data(captures)
	var chunks []Chunk
	add := func(parts ...*genai.Part) { chunks = append(chunks, Chunk{Parts: parts}) }
	size := 0
	if r.thought != nil {
		text, err := render(r.thought, data)
		if err != nil {
			return nil, fmt.Errorf("thought: %w", err)
		}
		size += len(text)
		add(&genai.Part{Text: text, Thought: true})
	}
	if r.text != nil {
		text, err := render(r.text, data)
		if err != nil {
			return nil, fmt.Errorf("text: %w", err)
		}
		size += len(text)
		for _, piece := range pieces(text, r.chunks) {
			add(&genai.Part{Text: piece})
		}
		if len(r.calls) == 0 && len(r.signature) > 0 {
			add(&genai.Part{ThoughtSignature: r.signature})
		}
	}
	var calls []*genai.Part
	for i := range r.calls {
		made, err := r.calls[i].expand(data)
		if err != nil {
			return nil, err
		}
		for _, c := range made {
			size += len(encode(c))
			calls = append(calls, &genai.Part{FunctionCall: c})
		}
	}
	if len(calls) > 0 {
		calls[0].ThoughtSignature = r.signature
	}
	switch {
	case r.partialArgs:
		for _, p := range calls {
			for _, fragment := range fragments(p) {
				add(fragment)
			}
		}
	case r.splitCalls:
		for _, p := range calls {
			add(p)
		}
	case len(calls) > 0:
		add(calls...)
	}
	asked := len(encode(s.user)) + 4
	for _, x := range s.results {
		asked += len(x.json)
	}
	usage := &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: int32(asked/4 + 1), CandidatesTokenCount: int32(size/4 + 1)}
	usage.TotalTokenCount = usage.PromptTokenCount + usage.CandidatesTokenCount
	return append(chunks, Chunk{Parts: []*genai.Part{}, FinishReason: genai.FinishReasonStop, Usage: usage}), nil
}

// pieces cuts text into n parts of about one length, never inside a character; fewer when the text is short.
func pieces(text string, n int) []string {
	n = max(1, min(n, utf8.RuneCountInString(text)))
	runes := []rune(text)
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, string(runes[i*len(runes)/n:(i+1)*len(runes)/n]))
	}
	return out
}

// fragments is a call as Gemini streams its arguments: the name, each value (strings in two pieces), the end.
func fragments(p *genai.Part) []*genai.Part {
	more := true
	name, id := p.FunctionCall.Name, p.FunctionCall.ID
	out := []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: id, Name: name, WillContinue: &more}, ThoughtSignature: p.ThoughtSignature}}
	whole := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(p.FunctionCall.Args)) {
		args, ok := leaves("$['"+k+"']", p.FunctionCall.Args[k])
		if !ok || !plainKey(k) {
			whole[k] = p.FunctionCall.Args[k]
			continue
		}
		for _, a := range args {
			out = append(out, &genai.Part{FunctionCall: &genai.FunctionCall{PartialArgs: []*genai.PartialArg{a}, WillContinue: &more}})
		}
	}
	if len(whole) > 0 {
		out[0].FunctionCall.Args = whole
	}
	return append(out, &genai.Part{FunctionCall: &genai.FunctionCall{}})
}

// leaves is the fragments of one value. It gives up on what fragments cannot say: empty objects and arrays, null, and
// numbers that a float64 does not hold.
func leaves(path string, v any) ([]*genai.PartialArg, bool) {
	var out []*genai.PartialArg
	switch v := exact(v).(type) {
	case string:
		more := true
		cut := pieces(v, 2)
		if len(cut) == 2 {
			out = append(out, &genai.PartialArg{JsonPath: path, StringValue: cut[0], WillContinue: &more})
		}
		return append(out, &genai.PartialArg{JsonPath: path, StringValue: cut[len(cut)-1]}), true
	case bool:
		return append(out, &genai.PartialArg{JsonPath: path, BoolValue: &v}), true
	case json.Number:
		f, err := v.Float64()
		if err != nil || encode(f) != v.String() {
			return nil, false
		}
		return append(out, &genai.PartialArg{JsonPath: path, NumberValue: &f}), true
	case []any:
		for i, x := range v {
			inner, ok := leaves(fmt.Sprintf("%s[%d]", path, i), x)
			if !ok {
				return nil, false
			}
			out = append(out, inner...)
		}
		return out, len(v) > 0
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			inner, ok := leaves(path+"['"+k+"']", v[k])
			if !ok || !plainKey(k) {
				return nil, false
			}
			out = append(out, inner...)
		}
		return out, len(v) > 0
	}
	return nil, false
}

// plainKey reports whether a key can stand between quotes in a path as it is.
func plainKey(k string) bool {
	for i := range len(k) {
		if k[i] == '\'' || k[i] == '\\' {
			return false
		}
	}
	return true
}

// copyChunks copies what a reader of the answer may change.
func copyChunks(chunks []Chunk) []Chunk {
	out := slices.Clone(chunks)
	for i := range out {
		out[i].Parts = slices.Clone(out[i].Parts)
		for j, p := range out[i].Parts {
			part := *p
			if p.FunctionCall != nil {
				call := *p.FunctionCall
				call.Args = maps.Clone(call.Args)
				part.FunctionCall = &call
			}
			part.ThoughtSignature = slices.Clone(p.ThoughtSignature)
			out[i].Parts[j] = &part
		}
	}
	return out
}
