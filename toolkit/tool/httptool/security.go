package httptool

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// secure adds the credentials that an operation asks for: those of the first of its alternatives for which the operator has
// bound all. An operation that asks for some is refused when none are bound, unless the operator sends a header of
// authorization with each request.
func (d *draft) secure(alternatives openapi3.SecurityRequirements, schemes openapi3.SecuritySchemes, bound map[string]string) error {
	if len(alternatives) == 0 {
		return nil
	}
	var lacking []string
	for _, needs := range alternatives {
		names := slices.Sorted(maps.Keys(needs))
		missing := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return bound[n] != "" })
		if len(missing) > 0 {
			lacking = append(lacking, strings.Join(missing, " and "))
			continue
		}
		for _, name := range names {
			scheme := schemes[name]
			if scheme == nil || scheme.Value == nil {
				return fmt.Errorf("its security scheme %s is not there", visibleName(name))
			}
			if err := d.credential(scheme.Value, bound[name]); err != nil {
				return fmt.Errorf("its security scheme %s: %w", visibleName(name), err)
			}
		}
		return nil
	}
	if slices.ContainsFunc(d.e.headers, func(h header) bool { return h.name == "Authorization" || h.name == "Cookie" || h.holdsSecret() }) {
		return nil
	}
	return fmt.Errorf("it needs the credential %.200s: bind one", strings.Join(lacking, ", or "))
}

func (h *header) holdsSecret() bool {
	return slices.ContainsFunc(h.value, func(p piece) bool { return p.secret != "" })
}

// credential adds one credential where its scheme wants it.
func (d *draft) credential(s *openapi3.SecurityScheme, text string) error {
	scheme := strings.ToLower(s.Scheme)
	switch {
	case s.Type == "apiKey" && s.In == "query":
		pieces, err := parsePieces(text)
		d.e.url.query = append(d.e.url.query, pair{name: s.Name, value: pieces})
		return err
	case s.Type == "apiKey" && s.In == "cookie" && isToken(s.Name):
		pieces, err := parsePieces(text)
		d.e.cookies = append(d.e.cookies, cookie{name: s.Name, value: pieces})
		return err
	case s.Type == "apiKey" && s.In == "header":
		return d.header(s.Name, text, false)
	case s.Type == "http" && scheme == "basic":
		return d.header("Authorization", text, true)
	case s.Type == "http" && scheme == "bearer", s.Type == "oauth2", s.Type == "openIdConnect":
		return d.header("Authorization", "Bearer "+text, false)
	}
	return fmt.Errorf("the kind %.20s is not supported", s.Type)
}

// header sets a header of the operator's in place of one that a parameter fills.
func (d *draft) header(name, text string, basic bool) error {
	h, err := parseHeader(name, text)
	if err != nil {
		return err
	}
	h.basic = basic
	if slices.ContainsFunc(d.e.headers, func(o header) bool { return o.name == h.name && !isArgument(o.value) }) {
		return nil // the operator's own word
	}
	d.e.headers = append(d.e.headers, h)
	d.fixed = append(d.fixed, http.CanonicalHeaderKey(name))
	return nil
}
