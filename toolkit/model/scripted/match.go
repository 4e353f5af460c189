package scripted

import (
	"regexp"
	"slices"
)

// match reports whether the rule holds in s, and what its expressions captured: named groups of user, then those of
// results, a later group winning over an earlier one of the same name.
func (r *rule) match(s state) (map[string]any, bool) {
	if !r.anyTurn && r.turn != s.turn {
		return nil, false
	}
	captures := map[string]any{}
	if r.user != nil && !capture(r.user, s.user, captures) {
		return nil, false
	}
	for _, tool := range r.after {
		if !slices.ContainsFunc(s.results, func(x result) bool { return x.tool == tool }) {
			return nil, false
		}
	}
	for _, want := range r.results {
		if !slices.ContainsFunc(s.results, func(x result) bool { return x.tool == want.tool && capture(want.json, x.json, captures) }) {
			return nil, false
		}
	}
	return captures, true
}

func capture(re *regexp.Regexp, text string, into map[string]any) bool {
	m := re.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	for i, name := range re.SubexpNames() {
		if name != "" {
			into[name] = m[i]
		}
	}
	return true
}
