package tool

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// aliasMark is how many characters of 5 bits tell the alias of one name from that of another.
const aliasMark = 8

// Alias is the name that stands for name wherever names are checked: name itself when protocol.CheckName takes it, else what
// is left of it and 8 characters of its SHA-256, as get_page_5trnm4vy for get/page. It depends on nothing but name, so that
// it is the same in every run and every process, and policy can name it. Two names have the same alias with the odds of 1 to
// 2^40, and then clash as two tools of one name do. The alias of an alias is the alias; that of "" is "", which is no name.
func Alias(name string) string {
	if name == "" || protocol.CheckName(name) == nil {
		return name
	}
	var b strings.Builder
	gap := false
	for _, r := range name {
		switch {
		case r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		default:
			gap = true
			continue
		}
		if first := b.Len() == 0; first && (r == '-' || '0' <= r && r <= '9') {
			b.WriteString("_")
		} else if gap && !first {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
		if b.Len() >= protocol.MaxNameLen {
			break
		}
	}
	kept := b.String()
	kept = strings.TrimRight(kept[:min(len(kept), protocol.MaxNameLen-aliasMark-1)], "_-")
	if kept == "" {
		kept = "tool"
	}
	sum := sha256.Sum256([]byte(name))
	return kept + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:aliasMark]))[:aliasMark]
}

// Aliased is t under a legal name: t itself when its name is one, else t named by Alias, which runs as t does and whose
// description says the name that t had. A toolset whose names come from outside passes each of its tools through it. It
// panics when t is nil.
func Aliased(t Tool) Tool {
	return ToolWithName(t, Alias(t.Name()))
}

// Original is the name that t has below everything that was put around it: what its author or its server calls it, for
// people to read. Policy, registry and confirmations go by t.Name().
func Original(t Tool) string {
	for {
		below := unwrap(t)
		if below == nil {
			return t.Name()
		}
		t = below
	}
}

// visible is a name from outside, quoted, and short enough for a sentence.
func visible(name string) string {
	if r := []rune(name); len(r) > 100 {
		name = string(r[:100]) + "..."
	}
	if _, hidden := protocol.HiddenRune(name); hidden {
		return strconv.QuoteToASCII(name)
	}
	return strconv.Quote(name)
}
