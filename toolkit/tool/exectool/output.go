package exectool

import (
	"bytes"
	"strings"
)

// capped keeps what was written up to limit. Beyond it, it calls full once and drops the rest.
type capped struct {
	buf   bytes.Buffer
	limit int
	full  func()
}

func (c *capped) Write(p []byte) (int, error) {
	room := c.limit - c.buf.Len()
	if len(p) > room {
		c.buf.Write(p[:max(room, 0)])
		if c.full != nil {
			c.full()
			c.full = nil
		}
		return len(p), nil
	}
	return c.buf.Write(p)
}

// tail keeps the end of what was written.
type tail struct {
	buf []byte
	cut bool
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > maxErrorTail {
		p = p[n-maxErrorTail:]
		t.cut = true
	}
	if over := len(t.buf) + len(p) - maxErrorTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.cut = true
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// text is the end as text.
func (t *tail) text() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(t.buf), "\uFFFD"))
}
