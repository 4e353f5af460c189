package cli

import (
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// readArgs takes a JSON object as it stands, from @FILE or from stdin for "-".
func (a *app) readArgs(value string) (json.RawMessage, error) {
	text, from, err := a.readJSON(value, "--args", protocol.ArgsLimits)
	if err != nil {
		return nil, err
	}
	if text[0] != '{' {
		return nil, protocol.Errorf(protocol.CodeUsage, "the arguments in %s are no JSON object; write {\"name\": value}", from)
	}
	return text, nil
}

// readJSON takes any JSON as it stands, from @FILE or from stdin for "-".
func (a *app) readJSON(value, flag string, limits protocol.Limits) (text json.RawMessage, from string, err error) {
	what := "the contents"
	if flag == "--args" {
		what = "the arguments"
	}
	from = flag
	switch {
	case value == "-":
		from = "stdin"
		text, err = io.ReadAll(io.LimitReader(a.in, int64(limits.Size)+1))
	case strings.HasPrefix(value, "@"):
		from = value[1:]
		text, err = os.ReadFile(from)
	default:
		text = []byte(value)
	}
	if err != nil {
		return nil, from, protocol.Wrap(err, protocol.CodeUsage, "%s cannot be read from %s", what, from)
	}
	if err := protocol.Check(text, limits); err != nil {
		return nil, from, protocol.Wrap(err, protocol.CodeUsage, "%s in %s are refused", what, from)
	}
	return json.RawMessage(strings.TrimSpace(string(text))), from, nil
}
