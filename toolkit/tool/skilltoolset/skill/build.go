package skill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Build writes a SKILL.md. What Parse reads of it is fm again, with an empty map or list as nil. The error is Validate's, or
// says what cannot be written.
func Build(fm *Frontmatter, markdown string) ([]byte, error) {
	if err := Validate(fm); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	put := func(indent, key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", indent, key, scalar(value))
		}
	}
	put("", "name", fm.Name)
	put("", "description", fm.Description)
	put("", "license", fm.License)
	put("", "compatibility", fm.Compatibility)
	if len(fm.Metadata) > 0 {
		b.WriteString("metadata:\n")
		for _, key := range slices.Sorted(maps.Keys(fm.Metadata)) {
			fmt.Fprintf(&b, "  %s: %s\n", scalar(key), scalar(fm.Metadata[key]))
		}
	}
	if len(fm.AllowedTools) > 0 {
		b.WriteString("allowed-tools:\n")
		for _, t := range fm.AllowedTools {
			fmt.Fprintf(&b, "  - %s\n", scalar(t))
		}
	}
	b.WriteString("---\n")
	b.WriteString(markdown)
	if again, _, err := ParseBytes(b.Bytes()); err != nil {
		return nil, fmt.Errorf("what was built cannot be read: %w", err)
	} else if !maps.Equal(again.Metadata, fm.Metadata) || !slices.Equal(again.AllowedTools, fm.AllowedTools) || again.Description != fm.Description {
		return nil, fmt.Errorf("%w: it holds text that YAML cannot bring back", ErrInvalidFrontmatter)
	}
	return b.Bytes(), nil
}

// plain is text that means itself without quotes. Whatever begins with a letter may still be a word of YAML.
var (
	plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.()/-]*( [A-Za-z0-9_.,()/-]+)*$`)
	words = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
)

// scalar writes a text. The quoted strings of JSON are YAML's too.
func scalar(text string) string {
	if plain.MatchString(text) && !words.MatchString(text) {
		return text
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always has a form
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
