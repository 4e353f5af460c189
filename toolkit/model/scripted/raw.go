package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/goccy/go-yaml/ast"
	"google.golang.org/genai"
)

// turn reads one answer of the raw mode: the provider's own JSON, whole or in chunks.
func (r *reader) turn(n ast.Node) turn {
	var out turn
	var whole Chunk
	fields := r.chunkFields(&whole)
	fields["chunks"] = func(n ast.Node) {
		r.list(n, "chunks", func(n ast.Node) {
			var c Chunk
			fields := r.chunkFields(&c)
			// A capture tells which of its chunks were partial; here the place in the list says it.
			fields["partial"] = func(n ast.Node) { r.boolean(n, "partial") }
			r.mapping(n, "a chunk", fields)
			out.chunks = append(out.chunks, c)
		})
	}
	r.behaviour(fields, &out.behaviour)
	r.mapping(n, "a turn", fields)
	if whole.Parts != nil || whole.FinishReason != "" || whole.Usage != nil {
		if out.chunks != nil {
			r.fail(n, "a turn has either chunks or parts")
		}
		out.chunks = []Chunk{whole}
	}
	if len(out.chunks) == 0 && (out.fault == nil || out.fault.times > 0) {
		r.fail(n, "a turn has parts or chunks")
	}
	return out
}

func (r *reader) chunkFields(c *Chunk) map[string]func(ast.Node) {
	return map[string]func(ast.Node){
		"parts": func(n ast.Node) {
			c.Parts = []*genai.Part{}
			r.list(n, "parts", func(n ast.Node) {
				p := &genai.Part{}
				r.into(n, p)
				c.Parts = append(c.Parts, p)
			})
		},
		"finishReason": func(n ast.Node) { c.FinishReason = genai.FinishReason(r.str(n, "finishReason")) },
		"usage": func(n ast.Node) {
			c.Usage = &genai.GenerateContentResponseUsageMetadata{}
			r.into(n, c.Usage)
		},
	}
}

// into decodes n as the JSON form of v, keeping every digit and refusing keys that v does not have.
func (r *reader) into(n ast.Node, v any) {
	b, err := json.Marshal(r.value(n, 0, plain))
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		d.DisallowUnknownFields()
		err = d.Decode(v)
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		r.fail(n, "%v", err)
	}
}
