package assemble

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of one path. They bound what a hostile stream can make us allocate.
const (
	maxSegments = 64
	maxIndex    = 10_000
)

// segment is one step of a path: a name, or an index when name is nil.
type segment struct {
	name  *string
	index int
}

var errPath = errors.New("not a path of names and indexes")

// parsePath reads the part of RFC 9535 that names one place: $ followed by .name, ['name'], ["name"] or [index].
func parsePath(path string) ([]segment, error) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, fmt.Errorf("path %.60q does not begin with $", path)
	}
	var segs []segment
	for rest != "" {
		if len(segs) == maxSegments {
			return nil, fmt.Errorf("path %.60q has more than %d steps", path, maxSegments)
		}
		seg, tail, err := step(rest)
		if err != nil {
			return nil, fmt.Errorf("path %.60q: %w", path, err)
		}
		segs, rest = append(segs, seg), tail
	}
	return segs, nil
}

func step(s string) (segment, string, error) {
	if s[0] == '.' {
		end := strings.IndexAny(s[1:], ".[") + 1
		if end == 0 {
			end = len(s)
		}
		name := s[1:end]
		if name == "" || name == "*" {
			return segment{}, "", errPath
		}
		return segment{name: &name}, s[end:], nil
	}
	if s[0] != '[' || len(s) < 3 {
		return segment{}, "", errPath
	}
	if s[1] == '\'' || s[1] == '"' {
		return quoted(s[1:])
	}
	digits, tail, ok := strings.Cut(s[1:], "]")
	n, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil {
		return segment{}, "", errPath
	}
	if n > maxIndex {
		return segment{}, "", fmt.Errorf("index %d is more than %d", n, maxIndex)
	}
	return segment{index: int(n)}, tail, nil
}

// quoted reads a name in quotes and the bracket after it.
func quoted(s string) (segment, string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte(`'"\/`, s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		case c == '\\':
			return segment{}, "", errPath
		case c == s[0]:
			if i+1 >= len(s) || s[i+1] != ']' {
				return segment{}, "", errPath
			}
			name := b.String()
			return segment{name: &name}, s[i+2:], nil
		default:
			b.WriteByte(c)
		}
	}
	return segment{}, "", errPath
}
