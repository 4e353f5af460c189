package mcptoolset

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/internal/procgroup"
)

// How long a server may take to end after its standard input was closed, and again after SIGTERM.
const endGrace = 2 * time.Second

// maxLogLine is how much of a line of a server's standard error is logged, in bytes.
const maxLogLine = 4 << 10

// process starts a server and speaks with it over its standard input and output. Each Connect starts another one.
type process struct {
	make  func() *exec.Cmd
	limit int // bytes of one message
	log   *slog.Logger
}

// command is the process that Config describes.
func (c *Config) command() *process {
	return &process{limit: c.MaxResult, log: c.Logger, make: func() *exec.Cmd {
		cmd := exec.Command(c.Command[0], c.Command[1:]...)
		cmd.Dir = c.Dir
		for _, name := range []string{"PATH", "HOME", "LANG"} {
			if v, ok := os.LookupEnv(name); ok {
				cmd.Env = append(cmd.Env, name+"="+v)
			}
		}
		cmd.Env = append(cmd.Env, c.Env...)
		return cmd
	}}
}

// again makes what the caller's transport starts startable more than once.
func again(t *mcp.CommandTransport, limit int, log *slog.Logger) *process {
	first := t.Command
	return &process{limit: limit, log: log, make: func() *exec.Cmd {
		cmd := exec.Command(first.Path)
		cmd.Args, cmd.Env, cmd.Dir, cmd.Stderr = first.Args, first.Env, first.Dir, first.Stderr
		return cmd
	}}
}

// Connect implements mcp.Transport.
func (p *process) Connect(ctx context.Context) (mcp.Connection, error) {
	cmd := p.make()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A pipe of our own: that of exec is closed as soon as the process ends, with what it wrote last still unread.
	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = out
	if cmd.Stderr == nil {
		cmd.Stderr = &logLines{log: p.log}
	}
	cmd.WaitDelay = endGrace // of pipes that a child of the server holds open
	procgroup.Own(cmd)
	s := &server{cmd: cmd, stdin: stdin, stdout: stdout, ended: make(chan struct{})}
	if err := s.start(); err != nil {
		stdout.Close()
		out.Close()
		return nil, err
	}
	out.Close()
	frames := newFrames(stdout, p.limit, p.log)
	io := &mcp.IOTransport{Reader: &readCloser{frames, s.Close}, Writer: stdin, MaxLineLength: p.limit + frameSlack}
	return io.Connect(ctx)
}

// server is a running process.
type server struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	ended  chan struct{} // closed when the process was waited for
	once   sync.Once
}

// start starts the process and waits for it beside. Both happen in one goroutine, whose thread is its own: see procgroup.Attach.
func (s *server) start() error {
	started := make(chan error)
	go func() {
		defer close(s.ended)
		release := procgroup.Attach(s.cmd)
		defer release()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // how it ended is seen by whoever speaks with it
			_ = procgroup.Kill(s.cmd)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("the server could not be started: %w", err)
	}
	return nil
}

// Close ends the process as the protocol wants it: its input is closed, then it is asked, then killed with all that it
// started. It returns when it has ended.
func (s *server) Close() error {
	s.once.Do(func() {
		s.stdin.Close()
		if !s.gone(endGrace) {
			_ = procgroup.Terminate(s.cmd)
			if !s.gone(endGrace) {
				_ = procgroup.Kill(s.cmd)
				<-s.ended
			}
		}
		s.stdout.Close()
	})
	return nil
}

func (s *server) gone(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-s.ended:
		return true
	case <-timer.C:
		return false
	}
}

type readCloser struct {
	io.Reader
	close func() error
}

func (r *readCloser) Close() error { return r.close() }

// logLines writes each line to the log. What cannot be seen is escaped by the log's handler or not at all, so it is left out
// here.
type logLines struct {
	log *slog.Logger
	buf []byte
}

func (l *logLines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		p = rest
		l.buf = append(l.buf, line[:min(len(line), maxLogLine-min(len(l.buf), maxLogLine))]...)
		if whole {
			l.flush()
		}
	}
	return n, nil
}

func (l *logLines) flush() {
	if text := strings.TrimSpace(seen(string(l.buf))); text != "" {
		l.log.Info("the MCP server says", "text", text)
	}
	l.buf = l.buf[:0]
}

// seen is text without what hides or turns it.
func seen(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if _, hidden := protocol.HiddenRune(text); !hidden {
		return text
	}
	return strings.Map(func(r rune) rune {
		if _, hidden := protocol.HiddenRune(string(r)); hidden {
			return -1
		}
		return r
	}, text)
}

// frameSlack is how much longer than its limit a message may be that the reader behind frames sees.
const frameSlack = 64 << 10

// frames passes on the lines of a server that begin a JSON message. Servers print greetings and warnings to the same stream,
// which go to the log instead. A message over the limit is replaced by an error to the same request, so that one answer
// that is too large does not end the session of all the others.
type frames struct {
	in    *bufio.Reader
	limit int
	log   *slog.Logger
	line  []byte // what is left to pass on
}

func newFrames(r io.Reader, limit int, log *slog.Logger) *frames {
	return &frames{in: bufio.NewReaderSize(r, 64<<10), limit: limit, log: log}
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.line) == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.line)
	f.line = f.line[n:]
	return n, nil
}

func (f *frames) next() error {
	line, size, tail, err := f.read()
	if len(line) == 0 && err != nil {
		return err
	}
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0:
	case text[0] != '{' && text[0] != '[':
		f.log.Info("the MCP server says", "text", clip(seen(string(text)), maxLogLine))
	case size > f.limit:
		f.log.Warn("the MCP server sent a message over the limit, which is left out", "bytes", size, "limit", f.limit)
		f.line = overLimit(text, tail, fmt.Sprintf("of %d bytes is over the limit of %d", size, f.limit))
	case parts(text) > maxParts:
		f.log.Warn("the MCP server sent a message of too many parts, which is left out", "bytes", size, "limit", maxParts)
		f.line = overLimit(text, text[max(0, len(text)-tailKept):], fmt.Sprintf("has more than %d objects and lists", maxParts))
	default:
		f.line = line
	}
	return nil
}

// read reads one line. Of one over the limit it keeps the beginning and the end.
func (f *frames) read() (line []byte, size int, tail []byte, err error) {
	for {
		part, err := f.in.ReadSlice('\n')
		size += len(part)
		if size <= f.limit {
			line = append(line, part...)
		} else {
			tail = append(tail, part...)
			tail = tail[max(0, len(tail)-tailKept):]
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil && len(line) > 0 {
				line, err = append(line, '\n'), nil
			}
			return line, size, tail, err
		}
	}
}
