package protocol

import (
	"cmp"
	"slices"
	"strings"
)

// Closest returns known sorted by the edits that lead from name to it, fewest first, equals by name. Case and the choice
// between - and _ cost nothing. Only the first 64 letters of name count.
func Closest(name string, known []string) []string {
	from := foldName(name)
	distance := make(map[string]int, len(known))
	for _, k := range known {
		distance[k] = edits(from, foldName(k))
	}
	return slices.SortedFunc(slices.Values(known), func(x, y string) int {
		return cmp.Or(cmp.Compare(distance[x], distance[y]), strings.Compare(x, y))
	})
}

// Meant is the one of known that name is probably a slip of, and empty when nothing is close.
func Meant(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	best := Closest(name, known)[0]
	if edits(foldName(name), foldName(best)) > max(2, len(best)/3) {
		return ""
	}
	return best
}

func foldName(name string) []rune {
	r := []rune(strings.ToLower(strings.ReplaceAll(name, "-", "_")))
	return r[:min(len(r), MaxIDLen)]
}

// edits is the number of single-letter changes between a and b.
func edits(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
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
