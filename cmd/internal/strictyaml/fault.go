package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/protocol"
)

// Fault is one thing wrong in a file.
type Fault struct {
	File         string
	Line, Column int
	Message      string
}

func (f Fault) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// Faults is everything wrong in a file, in its order.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Fail notes a fault at a node.
func (d *Document) Fail(at ast.Node, format string, args ...any) {
	fault := Fault{File: d.file, Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	if at != nil && at.GetToken() != nil {
		fault.Line, fault.Column = at.GetToken().Position.Line, at.GetToken().Position.Column
	}
	d.faults = append(d.faults, fault)
}

// Err is all faults as one *protocol.Error of code usage; nil when there are none.
func (d *Document) Err() error {
	if len(d.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(d.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return protocol.Errorf(protocol.CodeUsage, "%s", d.faults.Error())
}

// closest is the known word nearest to word, if it is near enough to be a slip.
func closest(word string, known []string) string {
	best, distance := "", 1+len(word)/3
	for _, k := range known {
		if d := edits(word, k); d <= distance {
			best, distance = k, d-1
		}
	}
	return best
}

// edits counts the single-character changes between two words (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
