package natstest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// frame is one piece of the protocol between a client and a server: a line, and a payload for PUB, HPUB, MSG and HMSG. See
// https://docs.nats.io/reference/reference-protocols/nats-protocol.
type frame struct {
	op      string // in upper case
	subject string // of what has a payload
	reply   string
	bytes   []byte // all of it
}

// maxLine is how long a line may be, in bytes. INFO is the longest.
const maxLine = 64 << 10

const maxPayload = 64 << 20 // the most that a server can be made to take

// readFrame reads the next frame. The reader's buffer holds maxLine.
func readFrame(r *bufio.Reader) (frame, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return frame{bytes: bytes.Clone(line)}, err
	}
	fields := strings.Fields(string(line))
	if len(fields) == 0 {
		return frame{bytes: bytes.Clone(line)}, nil
	}
	f := frame{op: strings.ToUpper(fields[0]), bytes: bytes.Clone(line)}
	// subject [sid] [reply] [size of the headers] size
	fixed := map[string]int{"PUB": 3, "HPUB": 4, "MSG": 4, "HMSG": 5}[f.op]
	if fixed == 0 {
		return f, nil
	}
	if len(fields) != fixed && len(fields) != fixed+1 {
		return f, fmt.Errorf("natstest: %q is no frame", line)
	}
	f.subject = fields[1]
	if len(fields) == fixed+1 {
		f.reply = fields[2+strings.Count(f.op, "MSG")] // behind the sid
	}
	size, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil || size < 0 || size > maxPayload {
		return f, fmt.Errorf("natstest: %q has no size that can be", line)
	}
	payload := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(r, payload); err != nil {
		return f, err
	}
	f.bytes = append(f.bytes, payload...)
	return f, nil
}

// matches compares a subject with a pattern of tokens, * and >.
func matches(pattern, subject string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return len(got) > i
		case i >= len(got) || token != "*" && token != got[i]:
			return false
		}
	}
	return len(want) == len(got)
}
