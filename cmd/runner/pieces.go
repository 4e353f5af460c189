package runner

import (
	"strings"

	"github.com/toolfabric/toolfabric/coordinator/client"
)

// pieces is the text of one answer as far as the program has it.
type pieces struct {
	epoch  string // adoption that speaks
	spoken string
}

// token is what to tell of a piece. turns is how many turns of the run are recorded: what belongs to them comes too late.
func (p *pieces) token(t *client.Token, turns int) string {
	if t.Text == "" || t.Turn <= turns {
		return ""
	}
	piece := t.Text
	if t.Epoch != p.epoch && p.spoken != "" {
		piece, p.spoken = "\n"+piece, "" // another coordinator took over and asks again
	}
	p.epoch = t.Epoch
	p.spoken += t.Text
	return piece
}

// whole is what to tell when the answer is recorded: what is missing at the end of it, or all of it on a new line when pieces
// were lost on the way.
func (p *pieces) whole(text string) string {
	spoken := p.spoken
	p.spoken = ""
	if rest, ok := strings.CutPrefix(text, spoken); ok {
		return rest
	}
	return "\n" + text
}
