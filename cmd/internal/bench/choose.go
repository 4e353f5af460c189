package bench

import (
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// ours are the subjects that measure the fabric, and what it asks of the broker alone, by the names a user types, in the order of the report.
var ours = []struct {
	name string
	open Opener
}{
	{"idempotent", OpenIdempotent},
	{"at-most-once", OpenAtMostOnce},
	{"parallel", OpenParallel},
	{"session", OpenWhole},
	{"writes", OpenTurnWrites},
	{"session-writes", OpenSessionWrites},
}

// Choices are the names that Choose takes.
func Choices() []string {
	names := make([]string, len(ours))
	for i, o := range ours {
		names[i] = o.name
	}
	return names
}

// Choose returns the openers of the named subjects, in the order of Choices. It returns code usage for a name that is none
// of them.
func Choose(names []string) ([]Opener, error) {
	var openers []Opener
	for _, o := range ours {
		if slices.Contains(names, o.name) {
			openers = append(openers, o.open)
		}
	}
	for _, name := range names {
		if !slices.Contains(Choices(), name) {
			return nil, protocol.Errorf(protocol.CodeUsage, "no subject %q: there are %s", name, strings.Join(Choices(), ", "))
		}
	}
	return openers, nil
}
