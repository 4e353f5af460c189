package invoke

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/toolfabric/toolfabric/protocol"
)

const maxFaults = 8

func violation(err error, root *jsonschema.Schema) error {
	if v, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return protocol.Errorf(protocol.CodeSchemaViolation, "%s", faultText(v, root))
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return &protocol.Error{Code: protocol.CodeSchemaViolation, Public: e.Public}
	}
	return protocol.Wrap(err, protocol.CodeSchemaViolation, "the arguments cannot be read")
}

// faultText lists what is wrong, in the order of the places.
func faultText(e *jsonschema.ValidationError, root *jsonschema.Schema) string {
	var faults []string
	for leaf := range leaves(e) {
		faults = append(faults, describe(leaf, root)...)
	}
	slices.Sort(faults)
	faults = slices.Compact(faults)
	if more := len(faults) - maxFaults; more > 0 {
		faults = append(faults[:maxFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(faults, "; ")
}

// leaves yields the faults that explain e. Of alternatives it yields those of the branch that came closest, unless all
// of them failed at the same place: then the alternative itself is the fault.
func leaves(e *jsonschema.ValidationError) iter.Seq[*jsonschema.ValidationError] {
	return func(yield func(*jsonschema.ValidationError) bool) { walkLeaves(e, yield) }
}

func walkLeaves(e *jsonschema.ValidationError, yield func(*jsonschema.ValidationError) bool) bool {
	if len(e.Causes) == 0 {
		return yield(e)
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		best := closest(e)
		if best == nil {
			return yield(e)
		}
		return walkLeaves(best, yield)
	}
	for _, c := range e.Causes {
		if !walkLeaves(c, yield) {
			return false
		}
	}
	return true
}

func closest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	var best *jsonschema.ValidationError
	depth := len(e.InstanceLocation)
	for _, c := range e.Causes {
		mistyped := false
		for leaf := range leaves(c) {
			_, t := leaf.ErrorKind.(*kind.Type)
			mistyped = mistyped || t && len(leaf.InstanceLocation) == depth
		}
		if mistyped {
			continue // another type altogether: not what was meant
		}
		if best != nil {
			return nil
		}
		best = c
	}
	return best
}

// refusesNull reports whether e is about a null that stands where the schema wants something else.
func refusesNull(e *jsonschema.ValidationError) bool {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return k.Got == "null"
	case *kind.Enum:
		return k.Got == nil
	case *kind.Const:
		return k.Got == nil
	case *kind.AnyOf, *kind.OneOf:
		for _, c := range e.Causes {
			for leaf := range leaves(c) {
				if !refusesNull(leaf) {
					return false
				}
			}
		}
		return len(e.Causes) > 0
	}
	return false
}

var english = message.NewPrinter(language.English)

func describe(e *jsonschema.ValidationError, root *jsonschema.Schema) []string {
	at := e.InstanceLocation
	one := func(format string, args ...any) []string {
		return []string{pointer(at) + ": " + fmt.Sprintf(format, args...)}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return each(at, k.Missing, func(string) string { return "required, but missing" })
	case *kind.AdditionalProperties:
		return each(at, k.Properties, func(name string) string {
			if known := otherCase(name, at, root); known != "" {
				return "unknown property, did you mean " + quote(known) + "?"
			}
			return "unknown property"
		})
	case *kind.FalseSchema:
		return one("nothing is allowed here")
	case *kind.Type:
		return one("must be %s, got %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.AnyOf:
		return one("%s", alternatives(e, "must fit one of the schemas of anyOf"))
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			return one("must fit exactly one of the schemas of oneOf, fits several")
		}
		return one("%s", alternatives(e, "must fit exactly one of the schemas of oneOf"))
	case *kind.Not:
		return one("must not fit the schema of not")
	case *kind.Enum:
		return one("must be one of %s, got %s", list(k.Want), show(k.Got))
	case *kind.Const:
		return one("must be %s, got %s", show(k.Want), show(k.Got))
	case *kind.Minimum:
		return one("must be at least %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.Maximum:
		return one("must be at most %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.ExclusiveMinimum:
		return one("must be more than %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.ExclusiveMaximum:
		return one("must be less than %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.MultipleOf:
		return one("must be a multiple of %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.MinLength:
		return one("must have at least %d characters, got %d", k.Want, k.Got)
	case *kind.MaxLength:
		return one("must have at most %d characters, got %d", k.Want, k.Got)
	case *kind.MinItems:
		return one("must have at least %d items, got %d", k.Want, k.Got)
	case *kind.MaxItems:
		return one("must have at most %d items, got %d", k.Want, k.Got)
	case *kind.MinProperties:
		return one("must have at least %d properties, got %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return one("must have at most %d properties, got %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return one("items %d and %d are equal, must differ", k.Duplicates[0], k.Duplicates[1])
	case *kind.Pattern:
		return one("must match %s, got %s", quote(k.Want), show(k.Got))
	}
	return one("%s", e.ErrorKind.LocalizedString(english))
}

func alternatives(e *jsonschema.ValidationError, otherwise string) string {
	var want []string
	got := ""
	for _, c := range e.Causes {
		for leaf := range leaves(c) {
			k, ok := leaf.ErrorKind.(*kind.Type)
			if !ok || len(leaf.InstanceLocation) != len(e.InstanceLocation) {
				return otherwise
			}
			want, got = append(want, k.Want...), k.Got
		}
	}
	return "must be " + strings.Join(want, " or ") + ", got " + got
}

func each(at, names []string, text func(string) string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = pointer(append(at[:len(at):len(at)], name)) + ": " + text(name)
	}
	return out
}

// otherCase finds the property of the root that name meant but for its case.
func otherCase(name string, at []string, root *jsonschema.Schema) string {
	if root == nil || len(at) > 0 {
		return ""
	}
	for known := range root.Properties {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return ""
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) string {
	if len(path) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escapePointer.Replace(cut(p, 64)))
	}
	return b.String()
}

func rat(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func list(values []any) string {
	const most = 12
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			fmt.Fprintf(&b, "... (%d in all)", len(values))
			break
		}
		b.WriteString(show(v))
	}
	return b.String()
}

func show(v any) string {
	if s, ok := v.(string); ok {
		return quote(s)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return cut(string(b), 64)
}

func quote(s string) string { return strconv.Quote(cut(s, 64)) }

// cut shortens s to about n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
