package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/protocol"
)

// Exit codes.
const (
	exitOK          = 0
	exitUsage       = 2
	exitAuth        = 3
	exitUnreachable = 4
	exitRefused     = 5
	exitInternal    = 6
	exitInterrupted = 130
)

// ranError is an error of a command that ran, so that others are known to be about its flags and arguments.
type ranError struct{ error }

func (e ranError) Unwrap() error { return e.error }

// failure is what ended badly elsewhere, a run or a call, whatever its code: this command did its part.
type failure struct {
	code, message string
	absent        bool // nothing runs there that could have failed
}

func (f *failure) Error() string { return f.message }

// errDetached ends a command that the user left while its work goes on elsewhere.
var errDetached = errors.New("detached")

// readerLeft reports that our own output is read no longer; a broken connection is another thing.
func readerLeft(err error) bool {
	_, fabric := errors.AsType[*protocol.Error](err)
	_, network := errors.AsType[*net.OpError](err)
	return errors.Is(err, syscall.EPIPE) && !fabric && !network
}

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errDetached) {
		return exitInterrupted
	}
	if readerLeft(err) {
		return exitOK // the reader has seen enough
	}
	if f, ok := errors.AsType[*failure](err); ok {
		if f.absent {
			return exitUnreachable
		}
		return exitRefused
	}
	if _, ok := errors.AsType[*protocol.Error](err); !ok {
		if _, ran := errors.AsType[ranError](err); ran {
			return exitInternal
		}
		return exitUsage
	}
	switch protocol.CodeOf(err) {
	case protocol.CodeUsage, protocol.CodeBadName, protocol.CodeBadID:
		return exitUsage
	case protocol.CodeAuth, protocol.CodeForbidden:
		return exitAuth
	case protocol.CodeUnreachable, protocol.CodeServerTooOld:
		return exitUnreachable
	case protocol.CodeInternal:
		return exitInternal
	default:
		return exitRefused
	}
}

// nextSteps are commands that help, for codes whose messages cannot know the command line.
var nextSteps = map[protocol.Code]string{
	protocol.CodeUnreachable: "start a server with: toolfabric up    or name one with: --nats URL",
	protocol.CodeAuth:        "name a credentials file with: --creds FILE    or a context with: --context NAME",
	protocol.CodeForbidden:   "name a credentials file that has the permission with: --creds FILE",
	protocol.CodeNotFound:    "look at what is there with: toolfabric doctor",
}

// report tells an error on stderr: what, which thing, what next. With JSON output it is one JSON object.
func (a *app) report(cmd *cobra.Command, err error) {
	if errors.Is(err, errDetached) || readerLeft(err) {
		return // said when it happened, or nobody is there to read it
	}
	code, message, next := string(protocol.CodeOf(err)), err.Error(), ""
	if f, ok := errors.AsType[*failure](err); ok {
		code = f.code
	} else if e, ok := errors.AsType[*protocol.Error](err); ok {
		message = whole(err, e)
		if next = nextSteps[e.Code]; strings.Contains(message, "toolfabric ") {
			next = "" // it says itself what to do
		}
	} else if _, ran := errors.AsType[ranError](err); !ran {
		code, next = string(protocol.CodeUsage), "see: "+cmd.CommandPath()+" --help"
	}
	message, next = a.reaching(message), a.reaching(next)
	if a.set.Output == "json" {
		line, _ := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message, "next": next}})
		fmt.Fprintf(a.err, "%s\n", line)
		return
	}
	fmt.Fprintf(a.err, "%s %s %s\n", a.err.Paint(term.Red, "error:"), a.err.Text(message), a.err.Paint(term.Dim, "("+code+")"))
	if next != "" {
		fmt.Fprintf(a.err, "  %s\n", next)
	}
}

// whole is a message with the causes that help its reader: whoever sits here may read them.
func whole(err error, e *protocol.Error) string {
	message := e.Public
	if prefix, _, ok := strings.Cut(err.Error(), string(e.Code)+": "); ok {
		message = prefix + message
	}
	if e.Err != nil && !strings.Contains(message, e.Err.Error()) {
		message += ": " + e.Err.Error()
	}
	return message
}
