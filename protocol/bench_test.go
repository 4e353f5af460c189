package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkDecodeEnvelope(b *testing.B) {
	data := []byte(`{"v":1,"app":"assistant","user":"u","session":"s1","call":"c1","round":0,"tool":"hash","digest":"d","effect":"read","args":{"text":"hello","times":3},"answers_to":"results","start_by":1700000000000,"deadline":1700000060000,"timeout_ms":30000}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeEnvelope(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckArgs(b *testing.B) {
	data := []byte(`{"text":"hello","times":3,"nested":{"a":[1,2,3],"b":{"c":"d"}},"f":1.5e3}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(data, ArgsLimits); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckHostile measures documents of the largest size that cost the most: MB/s must not fall with their size.
func BenchmarkCheckHostile(b *testing.B) {
	keys := func(n int, width int) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, `"%0*d":0,`, width, i)
		}
		return `{` + strings.TrimSuffix(s.String(), ",") + `}`
	}
	for name, doc := range map[string]string{
		"keys":     keys(90_000, 6),
		"elements": `[` + strings.Repeat("0,", 500_000) + `0]`,
		"objects":  `[` + strings.Repeat("{},", 300_000) + `{}]`,
		"escapes":  `["` + strings.Repeat(`\u00e9`, 170_000) + `"]`,
		"pairs":    `["` + strings.Repeat(`\ud83d\ude00`, 80_000) + `"]`,
		"long_key": `{"` + strings.Repeat("k", 1_000_000) + `":0}`,
		"twice":    `{"` + strings.Repeat("k", 500_000) + `":0,"` + strings.Repeat("k", 500_000) + `":0}`,
		"cut_off":  strings.Repeat(`[{"a":`, 60) + strings.Repeat(" ", 1_000_000),
		"deep":     strings.Repeat(`[`, 1_000_000),
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(doc)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				_ = Check(data, MessageLimits)
			}
		})
	}
}

// BenchmarkEncode compares with what the standard library does at least: validate raw parts and copy the result once.
func BenchmarkEncode(b *testing.B) {
	for _, size := range []int{100, 10_000, 500_000} {
		env := Envelope{V: Version, App: "assistant", Session: "s1", Call: "c1", Tool: "hash", Effect: EffectRead,
			Args: json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`)}
		b.Run(fmt.Sprintf("encode/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Encode(env); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("marshal/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := json.Marshal(env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	if got, _ := Encode("x"); !bytes.Equal(got, []byte(`"x"`)) {
		b.Fatalf("%q", got)
	}
}
