package worker_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

type recital struct {
	Count int    `json:"count"`
	Piece string `json:"piece"`
	Pause int    `json:"pause"` // milliseconds
}

// reciter says a piece again and again.
func reciter(t *testing.T) tool.Tool {
	t.Helper()
	made, err := functiontool.NewStreaming(functiontool.Config{Name: "recite", Description: "Recites.", Effect: tool.Read},
		func(ctx tool.Context, in recital) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				for range in.Count {
					if in.Pause > 0 && natswire.Sleep(ctx, natswire.SystemClock{}, time.Duration(in.Pause)*time.Millisecond) != nil || !yield(in.Piece, nil) { // the bubble's time
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

func TestPiecesOfAStreamedAnswerAreHeardWholeAndInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		args     recital
		messages int // at most
		heard    int // bytes of text
		less     int // so many less will do
	}{
		"a slow stream":       {recital{100, "ab ", 10}, 12, 300, 0},
		"all at once":         {recital{100, "ab ", 0}, 2, 300, 0},
		"much at once":        {recital{100, strings.Repeat("x", 100), 0}, 11, 10_000, 0},
		"a long one":          {recital{600, strings.Repeat("x", 1000), 0}, 600, 600_000, 0},
		"an answer too large": {recital{3000, strings.Repeat("x", 1000), 0}, 1100, 1 << 20, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				made := reciter(t)
				var heard strings.Builder
				messages := 0
				stop, err := f.bus.Subscribe(f.names.ProgressSubject("recite", "s", "*"), func(m natswire.Msg) {
					var p protocol.Progress
					if err := json.Unmarshal(m.Data, &p); err != nil || !p.Piece || p.Worker != "w1" || p.Attempt != 1 || len(p.Message) > 2<<10 {
						t.Errorf("%+v, %v", p, err)
					}
					heard.WriteString(p.Message)
					messages++
				})
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				f.serve(made)
				f.start("w1", worker.Config{}, made)
				args, err := json.Marshal(c.args)
				if err != nil {
					t.Fatal(err)
				}
				call := f.call(made, "c1", string(args))
				f.publish(call)
				after(5 * time.Second)
				whole := strings.Repeat(c.args.Piece, c.args.Count)
				if len(whole) > protocol.MaxInlineResult {
					f.want(call, protocol.OutcomeFailed, protocol.CodeTooLarge, "")
				} else {
					f.want(call, protocol.OutcomeCompleted, "", fmt.Sprintf(`{"result":%q}`, whole))
				}
				if n := heard.Len(); n > c.heard || n < c.heard-c.less || !strings.HasPrefix(whole, heard.String()) || messages > c.messages {
					t.Errorf("%d bytes in %d messages, want %d in at most %d", n, messages, c.heard, c.messages)
				}
			})
		})
	}
}
