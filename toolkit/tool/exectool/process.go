package exectool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/internal/procgroup"
)

const (
	maxErrorTail = 2 << 10                // how much of the end of standard error is kept, in bytes
	pipeGrace    = 500 * time.Millisecond // how long pipes may stay open after the group was killed
)

// Process is one run of a program under the rules of this package, for other kinds of tools that start some.
type Process struct {
	Path string   // of the program, absolute
	Args []string // as the program sees them: the first is its own name
	Dir  string   // where it works; empty is here
	// Env is added to PATH, HOME and LANG of this process and to TF_CALL_ID, TF_SESSION and TF_ATTEMPT, as NAME=value; the
	// last one of a name counts.
	Env       []string
	Stdin     io.Reader // nil is nothing
	MaxOutput int       // how many bytes of standard output it may write before it is killed
}

// Ended is what a program left behind.
type Ended struct {
	Stdout []byte
	Stderr string // the last 2 KiB, as valid UTF-8, without blanks around it
	Exit   string // "exit 3", or "exit 137 (killed)" in a shell's numbers; empty when the program ended well
	cut    bool   // Stderr had more
}

// Run runs the program and waits for its end, which comes at the latest when ctx ends: then its whole process group is
// killed, as is what it left running at its own end. The error is ctx's, or says that the program wrote too much or could
// not be started; an exit code is no error here.
func (p *Process) Run(ctx tool.Context) (Ended, error) {
	stop, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	out := &capped{limit: p.MaxOutput, full: func() { kill(errTooMuch) }}
	var tail tail
	cmd := exec.CommandContext(stop, p.Path, p.Args[1:]...)
	cmd.Args[0] = p.Args[0]
	cmd.Dir = p.Dir
	cmd.Env = p.environment(ctx)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, out, &tail
	procgroup.Own(cmd)
	cmd.Cancel = func() error { return procgroup.Kill(cmd) }
	cmd.WaitDelay = pipeGrace
	release := procgroup.Attach(cmd)
	err := cmd.Run()
	release()
	if cmd.Process != nil {
		_ = procgroup.Kill(cmd) // what it left running
	}
	ended := Ended{Stdout: out.buf.Bytes(), Stderr: tail.text(), cut: tail.cut}
	switch {
	case context.Cause(stop) == errTooMuch:
		return ended, fmt.Errorf("it wrote more than %d bytes and was killed; the output begins with: %s", p.MaxOutput, head(ended.Stdout))
	case ctx.Err() != nil:
		return ended, ctx.Err()
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // left pipes to a child that outlived it
		return ended, nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		ended.Exit = describe(exit)
		return ended, nil
	}
	return ended, fmt.Errorf("the command could not be started: %w", err)
}

var errTooMuch = errors.New("too much output")

func (p *Process) environment(ctx tool.Context) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, "TF_CALL_ID="+ctx.FunctionCallID(), "TF_SESSION="+ctx.SessionID(), "TF_ATTEMPT="+strconv.Itoa(ctx.Attempt()))
	return append(env, p.Env...)
}

// tail is what a failure adds to its exit code: nothing when nothing was written.
func (e *Ended) tail() string {
	switch {
	case e.Stderr == "":
		return ""
	case e.cut:
		return ": ... " + e.Stderr
	}
	return ": " + e.Stderr
}

// describe says how a command ended, in a shell's numbers: 128 and the signal for one that was killed.
func describe(e *exec.ExitError) string {
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return fmt.Sprintf("exit %d (%s)", 128+int(w.Signal()), w.Signal())
	}
	return fmt.Sprintf("exit %d", e.ExitCode())
}

func head(b []byte) string {
	return strings.ToValidUTF8(string(b[:min(len(b), 512)]), "\uFFFD")
}
