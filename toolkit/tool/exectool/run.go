package exectool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// Run takes arguments as ADK passes them, a map[string]any, and checks them first.
func (c *command) Run(ctx tool.Context, args any) (map[string]any, error) {
	m, ok := args.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("unexpected args type, got: %T", args)
	}
	raw, err := invoke.Encode(m)
	if err != nil {
		return nil, err
	}
	if raw, err = c.schema.Normalize(raw); err != nil {
		return nil, errors.New(err.(*protocol.Error).Public)
	}
	out, err := c.RunJSON(ctx, raw)
	if err != nil {
		return nil, err
	}
	return invoke.Map(out)
}

// RunJSON runs the command once.
func (c *command) RunJSON(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(args, &values); err != nil {
		return nil, err
	}
	argv, err := c.line(values)
	if err != nil {
		return nil, err
	}
	in, err := c.input(args, values)
	if err != nil {
		return nil, err
	}
	p := Process{Path: c.path, Args: append([]string{c.cfg.Argv[0]}, argv...), Dir: c.cfg.Dir, Env: c.cfg.Env, Stdin: in, MaxOutput: c.cfg.MaxOutput}
	if c.cfg.LongRunning {
		p.Env = append([]string{"TF_RESULT_HANDLE=" + ctx.ResultHandle()}, p.Env...)
	}
	ended, err := p.Run(ctx)
	switch {
	case err != nil:
		return nil, err
	case ended.Exit != "":
		return nil, errors.New(ended.Exit + ended.tail())
	case c.cfg.LongRunning && len(bytes.TrimSpace(ended.Stdout)) == 0:
		return json.RawMessage("null"), nil
	}
	return answer(ended.Stdout)
}

// line fills the command line. What follows the program is data, never options.
func (c *command) line(values map[string]json.RawMessage) ([]string, error) {
	var argv []string
	for _, e := range c.argv {
		if e.argument == "" {
			argv = append(argv, e.literal)
			continue
		}
		raw, ok := values[e.argument]
		if !ok {
			continue
		}
		text, err := plain(e.argument, raw)
		if err != nil {
			return nil, err
		}
		if !e.dash && strings.HasPrefix(text, "-") {
			return nil, fmt.Errorf("/%s: %q begins with a dash, which the command would take for an option", e.argument, text)
		}
		if raw[0] == '{' || raw[0] == '[' {
			return nil, fmt.Errorf("/%s: must be a string, number or boolean", e.argument)
		}
		argv = append(argv, text)
	}
	return argv, nil
}

func (c *command) input(args json.RawMessage, values map[string]json.RawMessage) (io.Reader, error) {
	switch c.stdin {
	case none:
		return nil, nil
	case "json":
		return bytes.NewReader(args), nil
	}
	raw, ok := values[c.stdin]
	if !ok {
		return nil, nil
	}
	if raw[0] != '"' {
		return bytes.NewReader(raw), nil
	}
	text, err := plain(c.stdin, raw)
	return strings.NewReader(text), err
}

// plain is a value as a command reads it.
func plain(name string, raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return string(raw), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", err
	}
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("/%s: holds a NUL byte", name)
	}
	return text, nil
}

// answer is JSON as it is, other text as a string, and bytes that are no text as a data: URI.
func answer(out []byte) (json.RawMessage, error) {
	if protocol.Check(out, protocol.MessageLimits) == nil {
		return bytes.TrimSpace(out), nil
	}
	if !utf8.Valid(out) {
		return invoke.Encode(out)
	}
	text := strings.TrimSuffix(string(out), "\n")
	return json.Marshal(strings.TrimSuffix(text, "\r"))
}
