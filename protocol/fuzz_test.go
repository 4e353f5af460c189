package protocol

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// fuzzDecoder holds a decoder to three promises: it refuses with a code of the caller's, in text that can be logged; what
// it takes can be written; and what was written is read to the same message, byte for byte. The corpus is the golden files
// of all messages: each decoder also gets the others'.
func fuzzDecoder[T any](f *testing.F, decode func([]byte) (T, error)) {
	files, err := filepath.Glob("testdata/v*/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		v, err := decode(data)
		if !bytes.Equal(before, data) {
			t.Fatal("the decoder changed its input")
		}
		if err != nil {
			if CodeOf(err).Actor() == "" || CodeOf(err) == CodeInternal || !utf8.ValidString(err.Error()) || len(err.Error()) > 2000 {
				t.Fatalf("refused with code %s: %.3000q", CodeOf(err), err)
			}
			return
		}
		wrote, err := Encode(v)
		if err != nil {
			t.Fatalf("taken, but it cannot be written: %v", err)
		}
		again, err := decode(wrote)
		if err != nil {
			t.Fatalf("taken, but refused after writing it as %s: %v", wrote, err)
		}
		if twice, err := Encode(again); err != nil || !bytes.Equal(wrote, twice) {
			t.Fatalf("written as\n%s\nand then as\n%s, %v", wrote, twice, err)
		}
	})
}

func FuzzDecodeInput(f *testing.F)        { fuzzDecoder(f, DecodeInput) }
func FuzzDecodeEnvelope(f *testing.F)     { fuzzDecoder(f, DecodeEnvelope) }
func FuzzDecodeResult(f *testing.F)       { fuzzDecoder(f, DecodeResult) }
func FuzzDecodeRegistration(f *testing.F) { fuzzDecoder(f, DecodeRegistration) }
func FuzzDecodeAccepted(f *testing.F)     { fuzzDecoder(f, DecodeAccepted) }
func FuzzDecodeEvent(f *testing.F)        { fuzzDecoder(f, DecodeEvent) }
