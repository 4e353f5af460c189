package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/toolfabric/toolfabric/protocol"
)

// draft is an operation on its way to be an endpoint.
type draft struct {
	e          *endpoint
	c          *converter
	properties map[string]any
	required   []string
	wire       map[string]string // argument of a parameter in the path, by its name there
	fixed      []string          // headers that are the operator's
	without    []string          // what of the operation is left out, and why
}

// argument finds a name for a parameter that every model's provider takes, and that no other argument has.
func (d *draft) argument(name, in string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	plain = strings.Trim(plain, "_")
	plain = plain[:min(len(plain), 50)]
	if plain == "" || plain == bodyArgument {
		plain = in + "_" + plain
	}
	if _, taken := d.properties[plain]; taken {
		plain += "_" + in
	}
	free := plain
	for n := 2; ; n++ {
		if _, taken := d.properties[free]; !taken {
			return free
		}
		free = plain + "_" + strconv.Itoa(n)
	}
}

// fill adds credentials, parameters and body.
func (d *draft) fill(doc *openapi3.T, item *openapi3.PathItem, op *openapi3.Operation, bound map[string]string) error {
	var schemes openapi3.SecuritySchemes
	if doc.Components != nil {
		schemes = doc.Components.SecuritySchemes
	}
	if err := d.secure(doc.Security, schemes, bound); err != nil {
		return err
	}
	parameters := slices.Clone(op.Parameters)
	for _, shared := range item.Parameters {
		if shared.Value != nil && op.Parameters.GetByInAndName(shared.Value.In, shared.Value.Name) == nil {
			parameters = append(parameters, shared)
		}
	}
	for _, p := range parameters {
		if p.Value == nil {
			return errors.New("a parameter of it cannot be read")
		}
		if err := d.parameter(p.Value); err != nil {
			return err
		}
	}
	return d.requestBody(op.RequestBody)
}

// path makes the URL's template of the document's path, whose places have the names of parameters.
func (d *draft) path(base, path string) error {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#") {
		return errors.New("its path is no path")
	}
	t, err := parseTemplate(base + renamed(path, d.wire))
	if err != nil {
		return err
	}
	if err := d.e.client.guard.checkHost(hostOf(t.origin)); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, s := range t.path {
		for _, p := range s {
			if p.argument != "" && !slices.Contains(slices.Collect(maps.Values(d.wire)), p.argument) {
				return fmt.Errorf("its path has {%.60s}, which is no parameter of it", p.argument)
			}
			used[p.argument] = true
		}
	}
	for name, argument := range d.wire {
		if !used[argument] {
			return fmt.Errorf("its parameter %s stands nowhere in its path", visibleName(name))
		}
	}
	d.e.url.origin, d.e.url.path = t.origin, t.path
	return nil
}

// renamed writes the names of arguments into the places of a path.
func renamed(path string, arguments map[string]string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(path, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if argument, known := arguments[name]; closed && known {
			name = argument
		}
		b.WriteString("{" + name)
		if closed {
			b.WriteString("}")
		}
		path = after
	}
}

// schema is that of all arguments.
func (d *draft) schema() (json.RawMessage, error) {
	schema := map[string]any{"type": "object", "properties": d.properties, "additionalProperties": false}
	if len(d.required) > 0 {
		slices.Sort(d.required)
		schema["required"] = d.required
	}
	if len(d.c.defs) > 0 {
		schema["$defs"] = d.c.defs
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, errors.New("its schema cannot be written")
	}
	if len(raw) > protocol.MaxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than %d", len(raw), protocol.MaxSchema)
	}
	return raw, nil
}
