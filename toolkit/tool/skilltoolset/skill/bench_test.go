package skill_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// A list is made on every turn of an agent with skills.
func BenchmarkListOfADirectory(b *testing.B) {
	files := fstest.MapFS{}
	for i := range 100 {
		name := fmt.Sprintf("skill-%d", i)
		files[name+"/SKILL.md"] = file("---\nname: " + name + "\ndescription: " + strings.Repeat("What it is for. ", 20) + "\nmetadata: {version: 1.0}\n---\n" + strings.Repeat("Do it.\n", 500))
	}
	s := directory(b, written(b, files))
	b.ReportAllocs()
	for b.Loop() {
		if list, err := s.ListFrontmatters(b.Context()); err != nil || len(list) != 100 {
			b.Fatal(len(list), err)
		}
	}
}
