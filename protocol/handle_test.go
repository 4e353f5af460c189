package protocol

import (
	"strings"
	"testing"
)

func TestHandleIsReadAsItWasWritten(t *testing.T) {
	h := Handle{App: "assistant", Tool: "order", Session: session, Call: call, Round: 3}
	text := h.String()
	if want := "assistant.order." + session + "." + call + ".3"; text != want {
		t.Errorf("written as %s, want %s", text, want)
	}
	if got, err := ParseHandle(text); err != nil || got != h {
		t.Errorf("read as %+v, %v", got, err)
	}
	if next := h.Next(); next.Round != 4 || h.Round != 3 {
		t.Errorf("after %+v comes %+v", h, next)
	}
	id := strings.Repeat("i", MaxIDLen)
	long := Handle{App: strings.Repeat("a", MaxNameLen), Tool: strings.Repeat("t", MaxNameLen), Session: id, Call: id, Round: 1 << 62}
	if n := len(long.String()); n > 280 {
		t.Errorf("%d bytes", n)
	}
}

func TestParseHandleRefusesWhatIsNone(t *testing.T) {
	for _, text := range []string{
		"", "a", "app.tool.s.c", "app.tool.s.c.1.2", "app.tool.s.c.0", "app.tool.s.c.-1", "app.tool.s.c.01", "app.tool.s.c.+1", "app.tool.s.c.x",
		".tool.s.c.1", "app..s.c.1", "app.tool..c.1", "app.tool.s..1", "*.tool.s.c.1", "app.tool.s.>.1", "a b.tool.s.c.1", "app.tool.s.c.99999999999999999999",
		strings.Repeat("a", 64) + ".tool.s.c.1", "app.tool.s." + strings.Repeat("c", 65) + ".1",
	} {
		if h, err := ParseHandle(text); CodeOf(err) != CodeBadID {
			t.Errorf("%q: got %+v, %v", text, h, err)
		}
	}
}
