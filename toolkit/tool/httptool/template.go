package httptool

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// template is a URL with places for arguments. Immutable once parsed.
type template struct {
	origin string // scheme://host[:port]: no argument ever gets there
	path   []segment
	query  []pair
}

// segment is what stands between two slashes of a path.
type segment []piece

// pair is one name=value of a query, whose name is fixed.
type pair struct {
	name  string // as the server reads it
	value []piece
	style style
}

// parseTemplate reads a URL such as https://api.example.com/v1/{city}/days?units={units}&key=${env:KEY}.
func parseTemplate(text string) (template, error) {
	var t template
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" {
		shown := fmt.Sprintf("%q", text)
		if strings.Contains(text, "@") {
			shown = "what may hold a password" // and is not shown
		}
		return t, fmt.Errorf("%s is no URL of the form https://host/path", shown)
	}
	if strings.Contains(withoutPlaces(rest), "#") {
		return t, errors.New("the URL has a fragment (#), which is never sent; leave it out")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if strings.Contains(authority, "@") {
		return t, errors.New("the URL holds a user or a password; name credentials in a header or with Basic, as ${env:NAME}")
	}
	if strings.ContainsAny(authority, "{}$") {
		return t, errors.New("scheme, host and port of the URL are fixed: no argument may stand there")
	}
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil || u.Host == "" {
		return t, fmt.Errorf("%q is no host", authority)
	}
	if err := checkHostName(u.Hostname()); err != nil {
		return t, err
	}
	if port := u.Port(); port == "" && strings.HasSuffix(authority, ":") || port == "0" {
		return t, fmt.Errorf("%q has no port after the colon", authority)
	}
	t.origin = scheme + "://" + strings.ToLower(u.Host)
	path, query, asks := cutQuery(rest[end:])
	if t.path, err = parsePath(path); err != nil {
		return t, err
	}
	if asks {
		t.query, err = parseQuery(query)
	}
	return t, err
}

// withoutPlaces is text without what stands in braces.
func withoutPlaces(text string) string {
	var b strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == '{':
			depth++
		case r == '}' && depth > 0:
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cutQuery cuts at the first ? that stands in no braces.
func cutQuery(text string) (path, query string, asks bool) {
	depth := 0
	for i, r := range text {
		switch {
		case r == '{':
			depth++
		case r == '}' && depth > 0:
			depth--
		case r == '?' && depth == 0:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

func parsePath(path string) ([]segment, error) {
	if path == "" {
		return []segment{nil}, nil
	}
	parts, err := splitOutside(path[1:], '/')
	if err != nil {
		return nil, fmt.Errorf("the path %s: %w", path, err)
	}
	segments := make([]segment, len(parts))
	for i, part := range parts {
		pieces, err := parsePieces(part)
		if err != nil {
			return nil, fmt.Errorf("the path %s: %w", path, err)
		}
		for _, p := range pieces {
			if p.secret != "" {
				return nil, fmt.Errorf("the path %s: a credential stands in a header or in the query, not in the path", path)
			}
			if err := checkLiteral(p.literal); err != nil {
				return nil, fmt.Errorf("the path %s: %w", path, err)
			}
		}
		if len(pieces) == 1 && pieces[0].argument == "" && climbs(plainly(pieces[0].literal)) {
			return nil, fmt.Errorf("the path %s: a segment %q leads elsewhere; write the path that is meant", path, part)
		}
		segments[i] = pieces
	}
	return segments, nil
}

func parseQuery(query string) ([]pair, error) {
	parts, err := splitOutside(query, '&')
	if err != nil {
		return nil, fmt.Errorf("the query %s: %w", query, err)
	}
	var pairs []pair
	for _, part := range parts {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		if strings.ContainsAny(name, "{}$") {
			return nil, fmt.Errorf("the query %s: names are fixed, arguments are values: write name={argument}", query)
		}
		plain, err := url.QueryUnescape(name)
		if err != nil {
			return nil, fmt.Errorf("the query %s: %q is no name", query, name)
		}
		pieces, err := parsePieces(value)
		if err != nil {
			return nil, fmt.Errorf("the query %s: %w", query, err)
		}
		for i, p := range pieces {
			if err := checkLiteral(p.literal); err != nil {
				return nil, fmt.Errorf("the query %s: %w", query, err)
			}
			if pieces[i].literal, err = url.QueryUnescape(p.literal); err != nil {
				return nil, fmt.Errorf("the query %s: %q is no value", query, p.literal)
			}
		}
		pairs = append(pairs, pair{name: plain, value: pieces})
	}
	return pairs, nil
}

// checkLiteral refuses what must not stand in a URL as it is.
func checkLiteral(s string) error {
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`|#", c) >= 0:
			return fmt.Errorf("%q stands in no URL; write it percent-encoded", string(rune(c)))
		case c == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])):
			return fmt.Errorf("%q is no percent-encoding", s[i:min(i+3, len(s))])
		}
	}
	return nil
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// splitOutside splits at each separator that stands in no braces.
func splitOutside(text string, separator rune) ([]string, error) {
	var parts []string
	from, depth := 0, 0
	for i, r := range text {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == separator && depth == 0:
			parts = append(parts, text[from:i])
			from = i + 1
		}
		if depth < 0 || depth > 1 {
			break
		}
	}
	if depth != 0 {
		return nil, errors.New("braces do not pair; an argument is written {name}")
	}
	return append(parts, text[from:]), nil
}

// fill makes the URL of a call. The result is read back and compared with the template, so that no mistake here can send
// a request elsewhere.
func (t *template) fill(v *values) (*url.URL, error) {
	var path strings.Builder
	for _, s := range t.path {
		text, err := s.fill(v)
		if err != nil {
			return nil, err
		}
		path.WriteByte('/')
		path.WriteString(text)
	}
	query, err := fillQuery(t.query, v)
	if err != nil {
		return nil, err
	}
	text := t.origin + path.String()
	if query != "" {
		text += "?" + query
	}
	if len(text) > maxURL {
		return nil, fmt.Errorf("the URL would have %d bytes, more than %d: send less", len(text), maxURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme+"://"+u.Host != t.origin || u.User != nil || u.Fragment != "" || u.EscapedPath() != path.String() || u.RawQuery != query {
		return nil, errors.New("the arguments make no legal URL")
	}
	return u, nil
}

// maxURL is the size of a filled URL, in bytes: what servers take.
const maxURL = 16 << 10

// fill is the segment as it is sent. Its arguments are percent-encoded, and what a server could read as another path is
// refused: a value stays what it is, one segment, also where somebody decodes it twice.
func (s segment) fill(v *values) (string, error) {
	var sent, meant strings.Builder
	for _, p := range s {
		if p.argument == "" {
			sent.WriteString(p.literal)
			meant.WriteString(plainly(p.literal))
			continue
		}
		texts, ok, err := v.texts(p.argument)
		switch {
		case err != nil:
			return "", err
		case !ok || len(texts) == 0 || len(texts) == 1 && texts[0] == "":
			return "", v.fault(p.argument, "is missing or empty, and the path of the URL would be another one without it")
		}
		for i, text := range texts {
			if err := checkSegment(text); err != nil {
				return "", v.fault(p.argument, "%s", err)
			}
			if i > 0 {
				sent.WriteByte(',')
				meant.WriteByte(',')
			}
			sent.WriteString(escape(text))
			meant.WriteString(text)
		}
	}
	if len(s) > 0 && climbs(meant.String()) {
		return "", fmt.Errorf("%s: %q leads to another path", s.places(), meant.String())
	}
	return sent.String(), nil
}

func (s segment) places() string {
	for _, p := range s {
		if p.argument != "" {
			return "/" + p.argument
		}
	}
	return "the path"
}

// escape percent-encodes all but letters, digits and - . _ ~.
func escape(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '.' || c == '_' || c == '~' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}
