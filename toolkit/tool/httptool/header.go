package httptool

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// header is one header of the request, whose name is fixed.
type header struct {
	name  string // canonical
	value []piece
	basic bool // the value is user:password, sent in base64
}

// cookie is one cookie of the request, filled by an argument or a credential.
type cookie struct {
	name  string
	value []piece
}

// reserved are the headers that say where a message ends, to whom it goes and what becomes of its connection.
var reserved = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Connection", "Keep-Alive", "Upgrade", "Expect",
	"Proxy-Authorization", "Proxy-Connection", "Http2-Settings", "Accept-Encoding", "Traceparent", "Tracestate",
}

func parseHeader(name, value string) (header, error) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !isToken(name):
		return header{}, fmt.Errorf("header %q: that is no name of a header", name)
	case slices.Contains(reserved, canonical):
		return header{}, fmt.Errorf("header %s: it is set by the request itself; leave it out", canonical)
	}
	pieces, err := parsePieces(value)
	if err != nil {
		return header{}, fmt.Errorf("header %s: %w", canonical, err)
	}
	for _, p := range pieces {
		if why := headerFault(p.literal); why != "" {
			return header{}, fmt.Errorf("header %s: the value %s", canonical, why)
		}
	}
	return header{name: canonical, value: pieces}, nil
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}

// headerFault says why a text cannot be a header's value; empty when it can.
func headerFault(text string) string {
	for _, r := range text {
		switch {
		case r == '\r' || r == '\n':
			return "holds a line end, which would begin another header"
		case r < ' ' && r != '\t' || r == 0x7f:
			return "holds a control character"
		case r > 0x7f:
			return fmt.Sprintf("holds %q: headers are ASCII", r)
		}
	}
	return ""
}

// set writes the header unless an argument of it is left out.
func (h *header) set(to http.Header, v *values) error {
	text, ok, err := v.join(h.value)
	if err != nil || !ok {
		return err
	}
	if why := headerFault(text); why != "" {
		for _, p := range h.value {
			if p.argument != "" {
				return v.fault(p.argument, "%s", why)
			}
		}
		return fmt.Errorf("header %s: the value %s", h.name, why) // of a credential: never shown
	}
	if h.basic {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		v.secrets.derived = append(v.secrets.derived, encoded)
		text = "Basic " + encoded
	}
	name := h.name
	if strings.HasSuffix(name, "Idempotency-Key") {
		name = strings.ToLower(name) // see client.once
	}
	to[name] = []string{strings.Trim(text, " \t")}
	return nil
}

// setCookies writes all cookies into one header. What a cookie's value may not hold is percent-encoded.
func setCookies(to http.Header, cookies []cookie, v *values) error {
	var parts []string
	for _, c := range cookies {
		text, ok, err := v.join(c.value)
		if err != nil {
			return err
		}
		if ok {
			parts = append(parts, c.name+"="+escape(text))
		}
	}
	if len(parts) > 0 {
		to["Cookie"] = []string{strings.Join(parts, "; ")}
	}
	return nil
}
