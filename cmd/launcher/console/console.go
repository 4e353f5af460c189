// Package console talks with an agent in the terminal: lines of stdin are messages, and calls that people are asked about are
// asked about there.
package console

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/cmd/launcher"
	"github.com/toolfabric/toolfabric/cmd/launcher/universal"
	"github.com/toolfabric/toolfabric/cmd/runner"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// The user and the app of a console's session.
const (
	userID  = "console_user"
	appName = "console_app"
)

// maxLine is the longest line that is read, in bytes.
const maxLine = 512 << 10

// Launcher is a launcher.Launcher and a launcher.SubLauncher. It is used by one goroutine.
type Launcher struct {
	flags *flag.FlagSet
	mode  string
	in    io.Reader
	out   io.Writer
}

// NewLauncher talks on stdin and stdout.
func NewLauncher() *Launcher {
	l := &Launcher{flags: flag.NewFlagSet("console", flag.ContinueOnError), in: os.Stdin, out: os.Stdout}
	l.flags.SetOutput(io.Discard) // the error says it
	l.flags.StringVar(&l.mode, "streaming_mode", string(agent.StreamingModeSSE), "`MODE` in which answers come: sse shows them as they are made, none when they are whole")
	return l
}

// Keyword is console.
func (l *Launcher) Keyword() string { return "console" }

// SimpleDescription is a line about the launcher.
func (l *Launcher) SimpleDescription() string { return "talks with the agent in the terminal" }

// CommandLineSyntax lists the flags.
func (l *Launcher) CommandLineSyntax() string {
	var b strings.Builder
	l.flags.SetOutput(&b)
	l.flags.PrintDefaults()
	l.flags.SetOutput(io.Discard)
	return b.String()
}

// Parse takes the flags and returns what follows them.
func (l *Launcher) Parse(args []string) ([]string, error) {
	if err := l.flags.Parse(args); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	if m := agent.StreamingMode(l.mode); m != agent.StreamingModeNone && m != agent.StreamingModeSSE {
		return nil, fmt.Errorf("console: streaming_mode %q: it is %s or %s", l.mode, agent.StreamingModeNone, agent.StreamingModeSSE)
	}
	return l.flags.Args(), nil
}

// Execute parses args and talks.
func (l *Launcher) Execute(ctx context.Context, config *launcher.Config, args []string) error {
	return universal.NewLauncher(l).Execute(ctx, config, args)
}

// Run talks with the root agent in a new session until the input or ctx ends.
func (l *Launcher) Run(ctx context.Context, config *launcher.Config) error {
	service := config.SessionService
	if service == nil {
		service = session.InMemoryService()
	}
	r, err := runner.New(runner.Config{
		AppName: appName, Agent: config.AgentLoader.RootAgent(), SessionService: service,
		ArtifactService: config.ArtifactService, MemoryService: config.MemoryService, PluginConfig: config.PluginConfig, Fabric: config.Fabric,
	})
	if err != nil {
		return err
	}
	defer r.Close()
	created, err := service.Create(ctx, &session.CreateRequest{AppName: appName, UserID: userID})
	if err != nil {
		return err
	}
	// A read of a terminal cannot be ended: whoever reads is left behind when ctx ends first.
	lines := make(chan string)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go readLines(reading, l.in, lines)
	t := &talk{runner: r, session: created.Session.ID(), mode: agent.StreamingMode(l.mode), lines: lines, out: l.out}
	err = t.converse(ctx)
	if errors.Is(err, errEnd) || ctx.Err() != nil {
		fmt.Fprintln(l.out)
		return nil
	}
	return err
}

func readLines(ctx context.Context, r io.Reader, lines chan<- string) {
	defer close(lines)
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		select {
		case lines <- in.Text():
		case <-ctx.Done():
			return
		}
	}
}

// talk is one conversation.
type talk struct {
	runner  *runner.Runner
	session string
	mode    agent.StreamingMode
	lines   <-chan string
	out     io.Writer
	open    []*genai.FunctionCall // questions that wait for a word
}

// errEnd says that there is no more input.
var errEnd = errors.New("the input has ended")

func (t *talk) read(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(t.out, prompt)
	select {
	case line, ok := <-t.lines:
		if !ok {
			return "", errEnd
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (t *talk) converse(ctx context.Context) error {
	for {
		line, err := t.read(ctx, "\nUser -> ")
		if err != nil {
			return err
		}
		if line == "" {
			continue
		}
		for msg := genai.NewContentFromText(line, genai.RoleUser); msg != nil; {
			if err := t.say(ctx, msg); err != nil {
				return err
			}
			if msg, err = t.ask(ctx); err != nil {
				return err
			}
		}
	}
}

// say sends a message, shows what comes, and notes the questions that are to be answered.
func (t *talk) say(ctx context.Context, msg *genai.Content) error {
	fmt.Fprint(t.out, "\nAgent -> ")
	for event, err := range t.runner.Run(ctx, userID, t.session, msg, agent.RunConfig{StreamingMode: t.mode}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(t.out, "\nAGENT_ERROR: %s\n", term.EscapeLine(err.Error()))
			continue
		}
		if event.Content == nil {
			continue
		}
		for _, p := range event.Content.Parts {
			if isQuestion(p) {
				t.open = append(t.open, p.FunctionCall)
			}
			if p != nil && !p.Thought && event.Partial == (t.mode == agent.StreamingModeSSE) {
				fmt.Fprint(t.out, term.Escape(p.Text))
			}
		}
	}
	return nil
}
