// Package badinput publishes to every channel what a broken client or an attacker would, and holds what is told about it
// in golden files: the error, where it shows, and that everybody else goes on.
package badinput

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What differs from run to run stands in golden files as a word.
var varying = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`\b[a-z2-7]{26}\b`), "ID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST:PORT"},
	{regexp.MustCompile(`after \d+(\.\d+)?m?s\b`), "after TIME"},
}

func stable(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.word)
	}
	return text
}

// golden compares what a channel's rows told with its file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = stable(got)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update rewrites it:\n%s", file, got)
	}
}
