package skill

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/protocol"
)

// Limits of a frontmatter in characters, which are code points here as in the specification: ADK for Go counts bytes, so
// that whatever it takes is taken here.
const (
	MaxName          = 64
	MaxDescription   = 1024
	MaxCompatibility = 500
)

// Frontmatter is what a skill says about itself.
type Frontmatter struct {
	Name          string            `yaml:"name" json:"name"`
	Description   string            `yaml:"description" json:"description"`
	License       string            `yaml:"license,omitempty" json:"license,omitempty"`
	Compatibility string            `yaml:"compatibility,omitempty" json:"compatibility,omitempty"`
	Metadata      map[string]string `yaml:"metadata,omitempty" json:"metadata,omitempty"`
	// AllowedTools is what the skill's author expects to be used. It allows nothing by itself.
	AllowedTools []string `yaml:"allowed-tools,omitempty" json:"allowed-tools,omitempty"`
}

const byteOrderMark = "\uFEFF"

// Parse reads a frontmatter and leaves the instructions in r. Line ends are those of Unix or of Windows, and a byte order
// mark may stand before the first separator, a line "---". Errors name the line; they have ErrInvalidFrontmatter in their
// chain unless they are r's own.
func Parse(r *bufio.Reader) (*Frontmatter, error) {
	line, ended, err := readLine(r, MaxFrontmatter)
	if err != nil {
		return nil, err
	}
	if first := strings.TrimPrefix(line, byteOrderMark); !isSeparator(first) {
		return nil, misplaced(1, 1, "a SKILL.md begins with a line of three dashes, and its frontmatter ends with one")
	}
	var text bytes.Buffer
	for !ended {
		if line, ended, err = readLine(r, MaxFrontmatter-text.Len()); err != nil {
			return nil, err
		}
		if isSeparator(line) {
			return parseYAML(text.Bytes())
		}
		text.WriteString(line)
		text.WriteByte('\n')
	}
	return nil, misplaced(1, 1, "the frontmatter has no end: a line of three dashes is missing below it")
}

// ParseBytes reads a whole SKILL.md and returns the instructions as they are written.
func ParseBytes(content []byte) (*Frontmatter, string, error) {
	r := bufio.NewReader(bytes.NewReader(content))
	fm, err := Parse(r)
	if err != nil {
		return nil, "", err
	}
	instructions, err := readInstructions(r)
	return fm, instructions, err
}

// readInstructions reads what Parse left.
func readInstructions(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxInstructions+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > MaxInstructions:
		return "", fmt.Errorf("%w: the instructions have more than %d bytes; move parts of them to references/", ErrTooLarge, MaxInstructions)
	case !utf8.Valid(text):
		return "", fmt.Errorf("%w: the instructions are not UTF-8 text", ErrInvalidFrontmatter)
	}
	return string(text), nil
}

// readLine reads at most limit bytes of a line, whose end is not part of it. ended says that there is no other one.
func readLine(r *bufio.Reader, limit int) (line string, ended bool, err error) {
	var b []byte
	for {
		part, err := r.ReadSlice('\n')
		b = append(b, part...)
		switch {
		case len(b) > limit+2:
			return "", false, fmt.Errorf("%w: the frontmatter has more than %d bytes: %w", ErrInvalidFrontmatter, MaxFrontmatter, ErrTooLarge)
		case err == nil, err == io.EOF:
			line := strings.TrimSuffix(string(b), "\n")
			return strings.TrimSuffix(line, "\r"), err == io.EOF, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", false, err
		}
	}
}

// isSeparator takes blanks behind the dashes, which nobody sees.
func isSeparator(line string) bool { return strings.TrimRight(line, " \t") == "---" }

// Validate checks the rules of the specification. It does not compare the name with a folder's. The error has
// ErrInvalidFrontmatter in its chain.
func Validate(fm *Frontmatter) error {
	if fm == nil {
		return fmt.Errorf("%w: it is nil", ErrInvalidFrontmatter)
	}
	for _, c := range []struct{ key, wrong string }{
		{"name", nameFault(fm.Name)},
		{"description", textFault(fm.Description, 1, MaxDescription)},
		{"license", textFault(fm.License, 0, MaxFrontmatter)},
		{"compatibility", textFault(fm.Compatibility, 0, MaxCompatibility)},
	} {
		if c.wrong != "" {
			return fmt.Errorf("%w: %s %s", ErrInvalidFrontmatter, c.key, c.wrong)
		}
	}
	return nil
}

// nameFault says what is wrong with a name; empty for nothing.
func nameFault(name string) string {
	switch n := len(name); {
	case n == 0:
		return "is empty"
	case n > MaxName:
		return fmt.Sprintf("has %d characters, more than %d", utf8.RuneCountInString(name), MaxName)
	case name[0] == '-' || name[n-1] == '-':
		return fmt.Sprintf("%q begins or ends with a hyphen", name)
	case strings.Contains(name, "--"):
		return fmt.Sprintf("%q has two hyphens in a row", name)
	}
	for _, c := range []byte(name) {
		if c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return fmt.Sprintf("%q: lower-case letters, digits and hyphens only", name)
		}
	}
	return ""
}

// textFault says what is wrong with a text that models and people read.
func textFault(text string, least, most int) string {
	if n := utf8.RuneCountInString(text); n < least {
		return "is empty"
	} else if n > most {
		return fmt.Sprintf("has %d characters, more than %d", n, most)
	}
	if !utf8.ValidString(text) {
		return "is not UTF-8 text"
	}
	if r, ok := protocol.HiddenRune(text); ok {
		return fmt.Sprintf("holds U+%04X, which hides or turns text: whoever reads it must see what the model is told", r)
	}
	return ""
}

// checkName is for names that come from outside.
func checkName(name string) error {
	if wrong := nameFault(name); wrong != "" {
		if len(name) > MaxName {
			name = name[:MaxName] + "..."
		}
		return fmt.Errorf("%w: %.80q: a name is 1 to %d lower-case letters, digits and single hyphens", ErrInvalidSkillName, name, MaxName)
	}
	return nil
}

func misplaced(line, column int, format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalidFrontmatter, &placed{line: line, column: column, message: fmt.Sprintf(format, args...)})
}
