package mcptoolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

type city struct {
	City string `json:"city" jsonschema:"the city's name"`
}

type weather struct {
	Summary string `json:"summary"`
}

func weatherServer() *mcp.Server {
	s := newServer()
	mcp.AddTool(s, &mcp.Tool{Name: "get_weather", Description: "Tells the weather of a city."},
		func(_ context.Context, _ *mcp.CallToolRequest, in city) (*mcp.CallToolResult, weather, error) {
			if in.City == "Atlantis" {
				return nil, weather{}, errors.New("no such city")
			}
			return nil, weather{Summary: "Today in " + in.City + " is sunny"}, nil
		})
	return s
}

func TestAServersToolPassesTheSuite(t *testing.T) {
	set := serve(t, weatherServer(), mcptoolset.Config{Settings: tool.Settings{Effect: tool.Read}})
	tools, err := set.Tools(nil)
	if err != nil || len(tools) != 1 {
		t.Fatalf("got %d tools, %v", len(tools), err)
	}
	tooltest.Run(t, func() tool.Tool { return tools[0] },
		tooltest.Case{Name: "answers", Args: `{"city":"London"}`, Want: `{"output":{"summary":"Today in London is sunny"}}`},
		tooltest.Case{Name: "fails", Args: `{"city":"Atlantis"}`, Outcome: protocol.OutcomeFailed, Want: `{"error":"Tool execution failed. Details: no such city"}`},
		tooltest.Case{Name: "refused", Args: `{}`, Refused: true},
	)
}

func TestEveryBlockOfAnAnswerIsRepresented(t *testing.T) { // H51
	size := int64(7)
	for name, c := range map[string]struct {
		res  *mcp.CallToolResult
		want string
	}{
		"texts are one":          {&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.TextContent{Text: "b"}}}, `{"output":"ab"}`},
		"nothing is empty text":  {&mcp.CallToolResult{Content: []mcp.Content{}}, `{"output":""}`},
		"structured wins":        {&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: `{ "n": 1 }`}}, StructuredContent: map[string]any{"n": 1}}, `{"output":{"n":1}}`},
		"text beside structured": {&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "one"}}, StructuredContent: []any{1}}, `{"output":{"structured":[1],"text":"one"}}`},
		"text as a field":        {&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "one"}}, StructuredContent: map[string]any{"content": "one"}}, `{"output":{"content":"one"}}`},
		"large numbers": {&mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: json.RawMessage(`{"n":9007199254740993,"f":1.10}`)},
			`{"output":{"n":9007199254740993,"f":1.10}}`},
		"resource, link and text": {&mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "status: ok"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "repo://x/README.md", MIMEType: "text/markdown", Text: "# Hi"}},
			&mcp.ResourceLink{URI: "file:///a", Name: "a", MIMEType: "text/plain", Size: &size},
		}}, `{"output":{"content":[{"type":"resource","uri":"repo://x/README.md","mime_type":"text/markdown","text":"# Hi"},{"type":"link","uri":"file:///a","name":"a","mime_type":"text/plain","size":7}],"text":"status: ok"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			raw(s, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return c.res, nil })
			want(t, run(t, one(t, serve(t, s, mcptoolset.Config{})), `{}`), protocol.OutcomeCompleted, c.want)
		})
	}
}

func TestBytesAreKeptOutOfTheAnswer(t *testing.T) {
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
			&mcp.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "u", Blob: []byte{0xff}}},
		}}, nil
	})
	it := one(t, serve(t, s, mcptoolset.Config{}))
	var kept store
	c := call(`{}`)
	c.Keep = kept.keep
	r, _ := it.Run(t.Context(), c)
	for _, part := range []string{`"type":"image"`, `"mime_type":"image/png","size":3,"sha256":"`, `"ref":{"name":"n"`, `"type":"audio"`, `"mime_type":"application/octet-stream"`} {
		if !strings.Contains(string(r.Value), part) {
			t.Errorf("%s lacks %s", r.Value, part)
		}
	}
	if len(kept.kept) != 3 || kept.kept["png"] != "image/png" {
		t.Errorf("kept %v", kept.kept)
	}
	r = run(t, it, `{}`)
	if r.Outcome != protocol.OutcomeCompleted || !strings.Contains(string(r.Value), `"omitted":"its bytes could not be kept`) {
		t.Errorf("without a store: got %s %s", r.Outcome, r.Value)
	}
}

func TestAnAnswerTooLargeIsShownInPart(t *testing.T) {
	const size = 3 << 20
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text("begin" + strings.Repeat("x", size) + "end"), nil
	})
	it := one(t, serve(t, s, mcptoolset.Config{}))
	var kept store
	c := call(`{}`)
	c.Keep = kept.keep
	r, _ := it.Run(t.Context(), c)
	var answer struct {
		Output struct {
			Truncated bool
			Size      int
			Excerpt   string
			Ref       *protocol.Ref
		}
	}
	v := &answer.Output
	if err := json.Unmarshal(r.Value, &answer); err != nil || r.Outcome != protocol.OutcomeCompleted || len(r.Value) > 64<<10 {
		t.Fatalf("got %s of %d bytes, %v", r.Outcome, len(r.Value), err)
	}
	if !v.Truncated || v.Size < size || !strings.Contains(v.Excerpt, "begin") || !strings.Contains(v.Excerpt, "end") || v.Ref == nil || v.Ref.Size < size {
		t.Errorf("got truncated %v, size %d, ref %+v", v.Truncated, v.Size, v.Ref)
	}
	if r := run(t, it, `{}`); r.Outcome != protocol.OutcomeCompleted || !strings.Contains(string(r.Value), `"omitted"`) {
		t.Errorf("without a store: %s %.200s", r.Outcome, r.Value)
	}
}
