package functiontool_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

type basket struct {
	Order string   `json:"order"`
	Lines []line   `json:"lines"`
	Note  *string  `json:"note,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

type line struct {
	SKU   string  `json:"sku"`
	Count int64   `json:"count"`
	Price float64 `json:"price"`
}

func lines(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"sku":"A-%d","count":%d,"price":9.5}`, i, i)
	}
	return `{"order":"10042","lines":[` + strings.Join(all, ",") + `],"tags":["a","b"]}`
}

// conversions are calls of functions that do nothing: what is left is decoding their arguments and encoding their answers.
// allocs is what they may cost; the function's own context is not in it.
var conversions = []struct {
	name   string
	make   func(t testing.TB) tool.RunnerJSON
	args   string
	allocs float64
}{
	{"two fields", func(t testing.TB) tool.RunnerJSON {
		return mustNew(t, functiontool.Config{}, func(tool.Context, orderIn) (orderOut, error) { return orderOut{Order: "10042", Total: 1}, nil })
	}, `{"order":"10042","full":true}`, 4},
	{"a basket of 20", func(t testing.TB) tool.RunnerJSON { return mustNew(t, functiontool.Config{}, echo[basket]) }, lines(20), 36},
	{"a map", func(t testing.TB) tool.RunnerJSON { return mustNew(t, functiontool.Config{}, echo[map[string]any]) }, lines(5), 230},
	{"a stream of 20", func(t testing.TB) tool.RunnerJSON {
		made, err := functiontool.NewStreaming(functiontool.Config{Name: "f"}, func(_ tool.Context, in basket) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				for _, l := range in.Lines {
					if !yield(l.SKU, nil) {
						return
					}
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return made.(tool.RunnerJSON)
	}, lines(20), 44},
}

// silent is a context that costs nothing.
type silent struct{ tool.Context }

func (silent) Err() error               { return nil }
func (silent) Progress(float64, string) {}

func BenchmarkConversion(b *testing.B) {
	for _, c := range conversions {
		b.Run(c.name, func(b *testing.B) {
			made, args := c.make(b), json.RawMessage(c.args)
			b.ReportAllocs()
			b.SetBytes(int64(len(args)))
			for b.Loop() {
				if _, err := made.RunJSON(silent{}, args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
