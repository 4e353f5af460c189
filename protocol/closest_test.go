package protocol

import (
	"slices"
	"strings"
	"testing"
)

func TestClosestNamesComeFirst(t *testing.T) {
	known := []string{"word_count", "get_weather", "get_time", "count_words"}
	got := Closest("get-wether", known)
	want := []string{"get_weather", "get_time", "count_words", "word_count"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if known[0] != "word_count" {
		t.Error("the caller's list was sorted")
	}
}

func TestMeantIsSilentWhenNothingIsClose(t *testing.T) {
	known := []string{"word_count", "get_weather"}
	for name, want := range map[string]string{
		"Word-Count": "word_count", "wordcount": "word_count", "get_wheather": "get_weather",
		"refund": "", "": "", strings.Repeat("x", 1<<20): "",
	} {
		if got := Meant(name, known); got != want {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
	if got := Meant("x", nil); got != "" {
		t.Errorf("nothing known: %q", got)
	}
}
