package functiontool_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

type story struct {
	Words []string `json:"words"`
	Fail  bool     `json:"fail,omitempty"`
}

// recite says the words one by one.
func recite(_ tool.Context, in story) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, word := range in.Words {
			if !yield(word, nil) {
				return
			}
		}
		if in.Fail {
			yield("lost", errors.New("cut"))
		}
	}
}

func streaming(t *testing.T, cfg functiontool.Config, f functiontool.StreamingFunc[story]) tool.Tool {
	t.Helper()
	cfg.Name, cfg.Description = "recite", "Recites words."
	made, err := functiontool.NewStreaming(cfg, f)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// told runs the tool and returns what it told meanwhile.
func told(t *testing.T, tl tool.Tool, ctx context.Context, args string) (protocol.Result, []protocol.Progress) {
	t.Helper()
	it, err := invoke.New(tl)
	if err != nil {
		t.Fatal(err)
	}
	var words []protocol.Progress
	r, err := it.Run(ctx, invoke.Call{Envelope: protocol.Envelope{Call: "c", Args: []byte(args)}, Progress: func(p protocol.Progress) { words = append(words, p) }})
	if err != nil {
		t.Fatal(err)
	}
	return r, words
}

func TestPiecesAreToldOneByOneAndAnsweredTogether(t *testing.T) {
	for name, made := range map[string]tool.Tool{
		"as it is":      streaming(t, functiontool.Config{}, recite),
		"with settings": tool.ToolWithSettings(streaming(t, functiontool.Config{}, recite), func(s *tool.Settings) { s.Effect = tool.Read }),
		"only streams":  tool.ToolWithDescription(onlyStreams{streaming(t, functiontool.Config{}, recite)}, "Recites."),
	} {
		r, words := told(t, made, t.Context(), `{"words":["a","","b\n"]}`)
		if string(r.Value) != `{"result":"ab\n"}` || r.Outcome != protocol.OutcomeCompleted {
			t.Errorf("%s: %s, %s", name, r.Outcome, r.Value)
		}
		if len(words) != 2 || words[0].Message != "a" || words[1].Message != "b\n" || !words[0].Piece {
			t.Errorf("%s: told %+v", name, words)
		}
		r, words = told(t, made, t.Context(), `{"words":["a"],"fail":true}`)
		if string(r.Value) != `{"error":"cut"}` || r.Outcome != protocol.OutcomeFailed || len(words) != 1 {
			t.Errorf("%s: %s, %s after %+v", name, r.Outcome, r.Value, words)
		}
		if r, _ := told(t, made, t.Context(), `{"words":[]}`); string(r.Value) != `{"result":""}` {
			t.Errorf("%s: no pieces are %s", name, r.Value)
		}
	}
}

// onlyStreams is a tool as adk-go's own, without Run.
type onlyStreams struct{ inner tool.Tool }

func (o onlyStreams) Name() string        { return o.inner.Name() }
func (o onlyStreams) Description() string { return o.inner.Description() }
func (onlyStreams) IsLongRunning() bool   { return false }
func (o onlyStreams) Declaration() *genai.FunctionDeclaration {
	return o.inner.(tool.RunnerStream).Declaration()
}
func (o onlyStreams) RunStream(ctx tool.Context, args any) iter.Seq2[string, error] {
	return o.inner.(tool.RunnerStream).RunStream(ctx, args)
}

func TestALongPieceIsToldInParts(t *testing.T) {
	piece := strings.Repeat("é", 1000)
	r, words := told(t, streaming(t, functiontool.Config{}, recite), t.Context(), `{"words":["x`+piece+`"]}`)
	var all string
	for _, w := range words {
		if len(w.Message) > 1024 {
			t.Errorf("a part has %d bytes", len(w.Message))
		}
		all += w.Message
	}
	if all != "x"+piece || string(r.Value) != `{"result":"x`+piece+`"}` {
		t.Errorf("told %d bytes, answered %d", len(all), len(r.Value))
	}
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	yields := 0
	made := streaming(t, functiontool.Config{}, func(tool.Context, story) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for yield("x", nil) { // for ever
				if yields++; yields == 3 {
					cancel()
				}
			}
		}
	})
	r, words := told(t, made, ctx, `{"words":[]}`)
	if r.Outcome != protocol.OutcomeCancelled || len(words) != 3 {
		t.Errorf("%s after %d words", r.Outcome, len(words))
	}
}

func TestAStreamThatIsNoneIsAnAnswer(t *testing.T) {
	none := streaming(t, functiontool.Config{}, func(tool.Context, story) iter.Seq2[string, error] { return nil })
	if r, _ := told(t, none, t.Context(), `{"words":[]}`); r.Outcome != protocol.OutcomeFailed || !strings.Contains(string(r.Value), "nil iterator") {
		t.Errorf("%s, %s", r.Outcome, r.Value)
	}
	for _, err := range none.(tool.RunnerStream).RunStream(nil, map[string]any{"words": []any{}}) {
		if err == nil {
			t.Error("no pieces without an error")
		}
	}
}

func TestAStreamIsReadPieceByPiece(t *testing.T) {
	s, ok := tool.As[tool.RunnerStream](streaming(t, functiontool.Config{}, recite))
	if !ok {
		t.Fatal("it cannot be read piece by piece")
	}
	var pieces []string
	for piece, err := range s.RunStream(nil, map[string]any{"words": []any{"a", "b", "c"}}) {
		if err != nil {
			t.Fatal(err)
		}
		if pieces = append(pieces, piece); piece == "b" {
			break
		}
	}
	if strings.Join(pieces, "") != "ab" {
		t.Errorf("got %v", pieces)
	}
	for _, args := range []any{nil, map[string]any{}, map[string]any{"words": 1}} {
		n := 0
		for _, err := range s.RunStream(nil, args) {
			if n++; err == nil {
				t.Errorf("%v is taken", args)
			}
		}
		if n != 1 {
			t.Errorf("%v: %d errors", args, n)
		}
	}
}

func TestAStreamThatNeedsAConfirmationIsGated(t *testing.T) {
	byProvider := streaming(t, functiontool.Config{RequireConfirmationProvider: func(in story) bool { return len(in.Words) > 1 }}, recite)
	byWrapper := tool.ToolWithConfirmation(streaming(t, functiontool.Config{}, recite), true, nil)
	for name, made := range map[string]tool.Tool{"provider": byProvider, "wrapper": byWrapper} {
		it, err := invoke.New(made)
		if err != nil {
			t.Fatal(err)
		}
		c := invoke.Call{Envelope: protocol.Envelope{Call: "c", Args: []byte(`{"words":["a","b"]}`)}}
		if r, open := it.Gate(t.Context(), c); open {
			t.Errorf("%s: the call may run: %s", name, r.Outcome)
		}
	}
}

func TestNewStreamingRefusesWhatNewRefuses(t *testing.T) {
	if _, err := functiontool.NewStreaming[story](functiontool.Config{Name: "f"}, nil); !errors.Is(err, functiontool.ErrInvalidArgument) {
		t.Errorf("no function: %v", err)
	}
	if _, err := functiontool.NewStreaming(functiontool.Config{Name: "a.b"}, recite); err == nil {
		t.Error("a bad name is taken")
	}
}
