package runner

import (
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

func TestPiecesAreToldOnceAndInFull(t *testing.T) {
	token := func(epoch string, turn int, text string) *client.Token {
		return &client.Token{Epoch: epoch, Token: protocol.Token{Turn: turn, Text: text}}
	}
	for name, c := range map[string]struct {
		tokens []*client.Token
		whole  string
		told   []string
	}{
		"all of them":            {[]*client.Token{token("1", 2, "a"), token("1", 2, "b")}, "ab", []string{"a", "b", ""}},
		"the last one is lost":   {[]*client.Token{token("1", 2, "a")}, "ab", []string{"a", "b"}},
		"none came":              {nil, "ab", []string{"ab"}},
		"one between is lost":    {[]*client.Token{token("1", 2, "a"), token("1", 2, "c")}, "abc", []string{"a", "c", "\nabc"}},
		"those of the last turn": {[]*client.Token{token("1", 1, "old"), token("1", 2, "a")}, "a", []string{"", "a", ""}},
		"another coordinator":    {[]*client.Token{token("1", 2, "x"), token("2", 2, "a"), token("2", 2, "b")}, "ab", []string{"x", "\na", "b", ""}},
	} {
		var p pieces
		var told []string
		for _, one := range c.tokens {
			told = append(told, p.token(one, 1))
		}
		told = append(told, p.whole(c.whole))
		if len(told) != len(c.told) {
			t.Fatalf("%s: %q", name, told)
		}
		for i := range told {
			if told[i] != c.told[i] {
				t.Errorf("%s: %q, want %q", name, told, c.told)
				break
			}
		}
		if got := p.whole("next"); got != "next" {
			t.Errorf("%s: the next answer begins with %q", name, got)
		}
	}
}
