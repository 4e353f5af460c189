package agentfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// Error is one fault of an agent file.
type Error struct {
	File         string
	Line, Column int // from 1
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors are all faults of the files that were read, by file and place. It is printed one per line.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, fault := range e {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes it an *protocol.Error of code usage to those who ask.
func (e Errors) Unwrap() error {
	return protocol.Errorf(protocol.CodeUsage, "%d faults in agent files", len(e))
}

func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(x, y *Error) int {
		return cmp.Or(strings.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column), strings.Compare(x.Message, y.Message))
	})
	return slices.CompactFunc(e, func(x, y *Error) bool { return *x == *y })
}
