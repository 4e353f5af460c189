package exectool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// DefaultMaxOutput is how many bytes a command may write to its standard output when Config does not say.
const DefaultMaxOutput = 256 << 10

// Config describes a command as a tool. Name and Argv are needed.
type Config struct {
	Name        string
	Description string
	// Argv is the program and its arguments. The program is looked up in PATH once, by New. An element that is "{name}"
	// becomes the argument of that name: a string as it is, a number or boolean as JSON writes it; left out when the call
	// leaves it out. A value that begins with "-" is refused unless the element stands after a literal "--".
	Argv []string
	// Schema is the JSON Schema of the call's arguments; nil is a tool without arguments.
	Schema json.RawMessage
	// Stdin says what the command reads: "json", all arguments as one JSON object, or the name of a property, whose value
	// it gets, a string as it is and anything else as JSON. Empty chooses by the properties that fill no element of Argv:
	// nothing when there is none, its value when there is one and it is a required string, otherwise JSON.
	Stdin string
	// Dir is the working directory; empty is the worker's. Env is added to PATH, HOME and LANG of the worker and to
	// TF_CALL_ID, TF_SESSION and TF_ATTEMPT, and TF_RESULT_HANDLE when LongRunning is set, as NAME=value; nothing else of
	// the worker's environment is passed on.
	Dir string
	Env []string
	// LongRunning says that what the command writes is not its result yet: nothing keeps the call waiting in silence,
	// anything else, a ticket say, is told to the model meanwhile. The result follows by the handle in TF_RESULT_HANDLE,
	// from whoever does the work: the command starts it and ends, and its process group ends with it.
	LongRunning bool
	// MaxOutput is how many bytes of standard output are read; 0 is DefaultMaxOutput. A command that writes more is
	// killed, and fails.
	MaxOutput int

	// The settings of the tool's pool: see tool.Settings for what the zero values mean.
	Effect       tool.Effect
	Timeout      time.Duration
	QueueTimeout time.Duration
	ParkTimeout  time.Duration
	Attempts     int
	MaxActive    int
	Confirm      bool
}

// New makes a tool of a command. The tool implements tool.RunnerJSON and tool.Configured.
//
// The command's answer is its standard output: as it is when that is one JSON document, with every digit, and otherwise
// as text without its last newline. Exit codes other than 0 are the tool's error, with the end of what it wrote to
// standard error. New returns an *Error of code bad_name, bad_declaration or usage.
func New(cfg Config) (tool.Tool, error) {
	if err := protocol.CheckName(cfg.Name); err != nil {
		return nil, err
	}
	if len(cfg.Schema) == 0 {
		cfg.Schema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	schema, err := invoke.CompileSchema(cfg.Schema)
	if err != nil {
		e, _ := errors.AsType[*protocol.Error](err)
		return nil, protocol.Errorf(e.Code, "tool %s: %s", cfg.Name, e.Public)
	}
	c := &command{cfg: cfg, schema: schema}
	if c.cfg.MaxOutput == 0 {
		c.cfg.MaxOutput = DefaultMaxOutput
	}
	if err := c.prepare(); err != nil {
		return nil, protocol.Errorf(protocol.CodeUsage, "tool %s: %s", cfg.Name, err)
	}
	return c, nil
}

// command is immutable once made.
type command struct {
	cfg    Config
	schema *invoke.Schema
	path   string // of the program, absolute
	argv   []element
	stdin  string // a property, "json", or none
}

// element is one element of the command line: literal, or the argument that fills it.
type element struct {
	literal  string
	argument string
	dash     bool // a value may begin with "-"
}

// none is the stdin of a command that reads nothing. No property has this name: "" is refused.
const none = ""

func (c *command) prepare() error {
	if len(c.cfg.Argv) == 0 || c.cfg.Argv[0] == "" {
		return errors.New("there is no command")
	}
	if c.cfg.MaxOutput < 0 || c.cfg.MaxOutput > protocol.MaxInlineResult {
		return fmt.Errorf("a maximum output of %d bytes is not between 0 and %d", c.cfg.MaxOutput, protocol.MaxInlineResult)
	}
	for _, kv := range c.cfg.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return fmt.Errorf("%q is no NAME=value", kv)
		}
	}
	path, err := exec.LookPath(c.cfg.Argv[0])
	if err != nil {
		return fmt.Errorf("the command %q is not there: %w", c.cfg.Argv[0], err)
	}
	if c.path, err = filepath.Abs(path); err != nil {
		return err
	}
	if c.cfg.Dir != "" {
		if info, err := os.Stat(c.cfg.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("the directory %q is not there", c.cfg.Dir)
		}
	}
	var shape struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(c.cfg.Schema, &shape); err != nil {
		return fmt.Errorf("the schema: %w", err)
	}
	var filled []string
	dash := false
	for _, a := range c.cfg.Argv[1:] {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("%q holds a NUL byte", a)
		}
		name, ok := placeholder(a)
		if !ok {
			dash = dash || a == "--"
			c.argv = append(c.argv, element{literal: a})
			continue
		}
		p, declared := shape.Properties[name]
		if !declared {
			return fmt.Errorf("%s names no property of the schema", a)
		}
		if p.Type == "object" || p.Type == "array" {
			return fmt.Errorf("%s is of type %s, which fills no element of a command line; pass it by standard input", a, p.Type)
		}
		filled = append(filled, name)
		c.argv = append(c.argv, element{argument: name, dash: dash})
	}
	switch c.cfg.Stdin {
	case "":
		var left []string
		for name := range shape.Properties {
			if !slices.Contains(filled, name) {
				left = append(left, name)
			}
		}
		switch {
		case len(left) == 0:
			c.stdin = none
		case len(left) == 1 && slices.Contains(shape.Required, left[0]) && shape.Properties[left[0]].Type == "string":
			c.stdin = left[0]
		default:
			c.stdin = "json"
		}
	case "json":
		c.stdin = "json"
	default:
		if _, ok := shape.Properties[c.cfg.Stdin]; !ok {
			return fmt.Errorf("standard input: %q is no property of the schema, and not json", c.cfg.Stdin)
		}
		c.stdin = c.cfg.Stdin
	}
	return nil
}

func placeholder(arg string) (string, bool) {
	name, ok := strings.CutPrefix(arg, "{")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, "}")
	return name, ok && name != "" && !strings.ContainsAny(name, "{}\" :,")
}

func (c *command) Name() string        { return c.cfg.Name }
func (c *command) Description() string { return c.cfg.Description }
func (c *command) IsLongRunning() bool { return c.cfg.LongRunning }

func (c *command) Settings() tool.Settings {
	return tool.Settings{
		Effect: c.cfg.Effect, Timeout: c.cfg.Timeout, QueueTimeout: c.cfg.QueueTimeout, ParkTimeout: c.cfg.ParkTimeout,
		Attempts: c.cfg.Attempts, MaxActive: c.cfg.MaxActive, Confirm: c.cfg.Confirm,
	}
}

func (c *command) Declaration() *genai.FunctionDeclaration {
	d := &genai.FunctionDeclaration{Name: c.cfg.Name, Description: c.cfg.Description, ParametersJsonSchema: c.cfg.Schema}
	if c.cfg.LongRunning {
		d.Description = strings.TrimSpace(d.Description + "\n\n" + tool.LongRunningNote)
	}
	return d
}
