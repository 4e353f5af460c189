package natstest

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestFramesAreReadWhole(t *testing.T) {
	for text, want := range map[string]frame{
		"PING\r\n":                                   {op: "PING"},
		"+OK\r\n":                                    {op: "+OK"},
		"INFO {\"a\":\"PUB b 5\"}\r\n":               {op: "INFO"},
		"PUB a.b 5\r\nh\r\nlo\r\n":                   {op: "PUB", subject: "a.b"},
		"pub a.b r.1 0\r\n\r\n":                      {op: "PUB", subject: "a.b", reply: "r.1"},
		"HPUB a r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n":   {op: "HPUB", subject: "a", reply: "r"},
		"HPUB a 12 12\r\nNATS/1.0\r\n\r\n\r\n":       {op: "HPUB", subject: "a"},
		"MSG a 7 2\r\nhi\r\n":                        {op: "MSG", subject: "a"},
		"MSG a 7 r 2\r\nhi\r\n":                      {op: "MSG", subject: "a", reply: "r"},
		"HMSG a 7 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n": {op: "HMSG", subject: "a", reply: "r"},
	} {
		r := bufio.NewReaderSize(strings.NewReader(text+"PONG\r\n"), maxLine)
		got, err := readFrame(r)
		if err != nil || got.op != want.op || got.subject != want.subject || got.reply != want.reply || string(got.bytes) != text {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
		if f, err := readFrame(r); err != nil || f.op != "PONG" {
			t.Errorf("behind %q: %+v, %v", text, f, err)
		}
	}
	for _, text := range []string{"MSG a 2\r\nhi\r\n", "PUB a x\r\n", "PUB a -1\r\n", "PUB a 5\r\nhi", "PIN"} {
		if f, err := readFrame(bufio.NewReaderSize(strings.NewReader(text), maxLine)); err == nil {
			t.Errorf("%q is read as %+v", text, f)
		}
	}
}

func TestPatterns(t *testing.T) {
	for pair, want := range map[string]bool{
		"a.b a.b": true, "a.* a.b": true, "a.> a.b.c": true, "> a": true, "*.b a.b": true,
		"a.b a": false, "a a.b": false, "a.> a": false, "a.* a.b.c": false, "a.*.c a.b.d": false,
	} {
		pattern, subject, _ := strings.Cut(pair, " ")
		if matches(pattern, subject) != want {
			t.Errorf("%s matches %s: %v", pattern, subject, !want)
		}
	}
}

func FuzzFramesComeOutAsTheyWentIn(f *testing.F) {
	f.Add([]byte("PUB a r 2\r\nhi\r\nHMSG a 7 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\nPING\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(data), maxLine)
		var out []byte
		for {
			fr, err := readFrame(r)
			if err != nil {
				if err == io.EOF && len(fr.bytes) == 0 && !bytes.Equal(out, data) {
					t.Errorf("%q comes out as %q", data, out)
				}
				return
			}
			out = append(out, fr.bytes...)
		}
	})
}
