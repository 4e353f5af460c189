package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// reach is the flags that say where the fabric is, as they were given.
type reach []struct{ name, value string }

func (r *reach) note(f *pflag.Flag) {
	value := f.Value.String()
	switch f.Name {
	case "nats":
		value = natswire.Redact(value)
	case "creds", "data":
		if path, err := filepath.Abs(value); err == nil && !strings.HasPrefix(value, "~/") { // in another folder, too
			value = path
		}
	case "context", "namespace":
	default:
		return
	}
	*r = append(*r, struct{ name, value string }{f.Name, value})
}

// flags are those that a verb takes, with a blank before each.
func (r reach) flags(verb string) string {
	var b strings.Builder
	for _, f := range r {
		if verb != "up" || f.name == "data" || f.name == "namespace" {
			b.WriteString(" --" + f.name + " " + boot.Quoted(f.value))
		}
	}
	return b.String()
}

var (
	commandLine = regexp.MustCompile(`\btoolfabric ([a-z][a-z-]*)[^\n]*`)
	// elsewhere are verbs that reach no fabric.
	elsewhere = []string{"help", "version", "demo", "bench", "fake-llm", "agents"}
)

// reaching is text in which each command line reaches the fabric that this one does: a person pastes them.
func (a *app) reaching(text string) string {
	if len(a.where) == 0 || !strings.Contains(text, "toolfabric ") {
		return text
	}
	var b strings.Builder
	for {
		at := commandLine.FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(text)
			return b.String()
		}
		line, verb := text[at[0]:at[1]], text[at[2]:at[3]]
		b.WriteString(text[:at[0]] + "toolfabric")
		told := strings.HasSuffix(line, " --help") || strings.Contains(line, " --nats ") || strings.Contains(line, " --data ") || strings.Contains(line, a.where.flags(""))
		if !told && slices.Contains(a.verbs, verb) && !slices.Contains(elsewhere, verb) {
			b.WriteString(a.where.flags(verb))
		}
		b.WriteString(" " + verb)
		text = text[at[3]:]
	}
}
