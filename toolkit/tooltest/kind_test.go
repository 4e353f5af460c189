package tooltest_test

import (
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

type pick struct {
	What string `json:"what"`
}

// results are what a function may answer, by the argument that asks for it.
var results = map[string]any{
	"object": map[string]any{"a": 1}, "empty": map[string]any{}, "null": nil, "list": []any{1, "x"}, "no list": []string(nil), "text": "x", "yes": true,
	"large": int64(math.MaxInt64), "structs": []struct {
		ID int `json:"id"`
	}{{1}}, "time": time.Unix(0, 0).UTC(), "bytes": []byte{0x68, 0xff, 0xfe, 0}, "broken": "a\xff b", "error inside": map[string]any{"e": errors.New("full")},
	"reserved": map[string]any{"output": 1, "error": "none", "rest": 2}, "nan": map[string]any{"x": math.NaN()}, "channel": make(chan int), "huge": strings.Repeat("x", 2<<20),
}

func TestWhateverAFunctionAnswersIsAResult(t *testing.T) { // H29, H30, H31, H32, H33, H44
	mk := func() tool.Tool {
		made, err := functiontool.New(functiontool.Config{Name: "pick", Description: "Picks an answer.", Effect: tool.Read}, func(ctx tool.Context, in pick) (any, error) {
			switch in.What {
			case "panic":
				panic("kaboom")
			case "go error":
				return results["object"], errors.New("disk full")
			case "again":
				return nil, tool.Retryable(errors.New("busy"))
			case "key":
				ctx.Progress(10, "begun")
				ctx.Progress(math.NaN(), "a\xff")
				return ctx.FunctionCallID() != "", nil
			}
			return results[in.What], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	ask := func(what, want string) tooltest.Case {
		return tooltest.Case{Name: what, Args: `{"what":"` + what + `"}`, Want: want}
	}
	fails := func(what string, code protocol.Code, want string) tooltest.Case {
		c := ask(what, want)
		c.Outcome, c.Code = protocol.OutcomeFailed, code
		return c
	}
	progress := ask("key", `{"result":true}`)
	progress.Tells = []string{"begun", "a\uFFFD"}
	tooltest.Run(t, mk,
		ask("object", `{"a":1}`), ask("empty", `{"result":{}}`), ask("null", `{"result":null}`), ask("list", `{"result":[1,"x"]}`),
		ask("no list", `{"result":[]}`), ask("text", `{"result":"x"}`), ask("yes", `{"result":true}`), ask("large", `{"result":9223372036854775807}`),
		ask("structs", `{"result":[{"id":1}]}`), ask("time", `{"result":"1970-01-01T00:00:00Z"}`),
		ask("bytes", `{"result":"data:application/octet-stream;base64,aP/+AA=="}`), ask("broken", `{"result":"a\ufffd b"}`),
		ask("error inside", `{"e":"full"}`), ask("reserved", `{"result":{"output":1,"error":"none","rest":2}}`), progress,
		fails("nan", "", `{"error":"the answer cannot be written as JSON: /x: NaN is no JSON value"}`),
		fails("channel", "", `{"error":"the answer cannot be written as JSON: /: a chan int is no JSON value"}`),
		fails("huge", protocol.CodeTooLarge, ""), fails("go error", "", `{"error":"disk full"}`), fails("again", "", `{"error":"busy"}`),
		fails("panic", protocol.CodeToolPanic, `{"error":"tool \"pick\" panicked: kaboom"}`),
	)
}

func TestAStreamingTool(t *testing.T) {
	mk := func() tool.Tool {
		made, err := functiontool.NewStreaming(functiontool.Config{Name: "spell", Description: "Spells a word.", Effect: tool.Idempotent},
			func(ctx tool.Context, in pick) iter.Seq2[string, error] {
				return func(yield func(string, error) bool) {
					if in.What == "slow" {
						<-ctx.Done()
						yield("", ctx.Err())
						return
					}
					for _, r := range in.What {
						if r == '!' {
							yield("", errors.New("no such letter"))
							return
						}
						if !yield(string(r), nil) {
							return
						}
					}
				}
			})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	tooltest.Run(t, mk,
		tooltest.Case{Name: "word", Args: `{"what":"abc"}`, Want: `{"result":"abc"}`, Tells: []string{"a", "b", "c"}},
		tooltest.Case{Name: "none", Args: `{"what":""}`, Want: `{"result":""}`},
		tooltest.Case{Name: "cut", Args: `{"what":"a!b"}`, Outcome: protocol.OutcomeFailed, Want: `{"error":"no such letter"}`, Tells: []string{"a"}},
		tooltest.Case{Name: "slow", Args: `{"what":"slow"}`, Blocks: true},
		tooltest.Case{Name: "bad arguments", Args: `{"what":1}`, Refused: true},
	)
}
