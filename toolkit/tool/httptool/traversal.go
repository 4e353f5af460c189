package httptool

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/toolfabric/toolfabric/protocol"
)

// checkSegment refuses a value that could be more than a part of one segment of a path to somebody on its way: servers
// decode before they split, proxies decode twice, some take a backslash for a slash, fold full-width characters or drop
// those that cannot be seen.
func checkSegment(value string) error {
	if !utf8.ValidString(value) {
		return errors.New("is no text")
	}
	if _, hidden := protocol.HiddenRune(value); hidden || strings.ContainsAny(value, "\t\r\n") {
		return fmt.Errorf("%q holds a character that cannot be seen", value)
	}
	folded := norm.NFKC.String(value)
	if strings.ContainsAny(folded, `/\`) {
		return fmt.Errorf("%q holds a slash, and would be another path", value)
	}
	for i := 0; i+2 < len(folded); i++ {
		if folded[i] == '%' && isHex(folded[i+1]) && isHex(folded[i+2]) {
			return fmt.Errorf("%q is percent-encoded already: write what is meant, it is encoded here", value)
		}
	}
	return nil
}

// climbs reports whether a segment, without its percent-encoding, is . or .. to somebody: folded, trimmed, or with a
// parameter behind a semicolon.
func climbs(segment string) bool {
	name, _, _ := strings.Cut(norm.NFKC.String(segment), ";")
	name = strings.TrimSpace(name)
	return name == "." || name == ".."
}

// plainly is a literal of a template without its percent-encoding, which was checked.
func plainly(literal string) string {
	for range 3 { // as often as anybody may decode it
		plain, err := url.PathUnescape(literal)
		if err != nil {
			break
		}
		literal = plain
	}
	return literal
}
