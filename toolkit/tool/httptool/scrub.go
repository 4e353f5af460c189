package httptool

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// secretMark stands where a credential stood.
const secretMark = "[secret]"

// forms are the credentials as they are, and as servers echo them: percent-encoded, in JSON, base64 and hex; the longest
// first, since a form must not be broken by a shorter one that begins it.
func (o *opened) forms() []string {
	var all []string
	for _, v := range o.values {
		inJSON, _ := json.Marshal(v)
		all = append(all, v, url.QueryEscape(v), url.PathEscape(v), escape(v), strings.Trim(string(inJSON), `"`), strings.ReplaceAll(v, "/", `\/`),
			base64.StdEncoding.EncodeToString([]byte(v)), base64.RawStdEncoding.EncodeToString([]byte(v)),
			base64.URLEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)),
			hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
	}
	all = append(all, o.derived...)
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(all)
}

// scrubber takes the credentials out of what a model may read.
type scrubber struct {
	replacer *strings.Replacer // nil when there are none
	forms    []string
}

func (o *opened) scrubber() scrubber {
	forms := o.forms()
	if len(forms) == 0 {
		return scrubber{}
	}
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, secretMark)
	}
	return scrubber{strings.NewReplacer(pairs...), forms}
}

// text is a text without credentials.
func (s scrubber) text(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// cut is a text that was cut at its end, without credentials and without the beginning of one there.
func (s scrubber) cut(text string) string {
	at := len(text)
	for _, form := range s.forms {
		for n := min(len(form)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, form[:n]) {
				at = min(at, len(text)-n)
				break
			}
		}
	}
	return s.text(text[:at])
}

// json is a JSON document without credentials, also those that are written with escapes. One without any keeps its bytes.
func (s scrubber) json(doc []byte) []byte {
	if s.replacer == nil {
		return doc
	}
	doc = []byte(s.replacer.Replace(string(doc)))
	if !bytes.Contains(doc, []byte(`\u`)) {
		return doc
	}
	tree, err := protocol.Tree(doc)
	if err != nil {
		return doc
	}
	found := false
	tree = s.tree(tree, &found)
	if !found {
		return doc
	}
	if doc, err = json.Marshal(tree); err != nil {
		return nil
	}
	return doc
}

func (s scrubber) tree(v any, found *bool) any {
	text := func(t string) string {
		clean := s.replacer.Replace(t)
		*found = *found || clean != t
		return clean
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		for i := range v {
			v[i] = s.tree(v[i], found)
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, e := range v {
			clean[text(k)] = s.tree(e, found)
		}
		return clean
	}
	return v
}
