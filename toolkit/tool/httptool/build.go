package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// builder makes endpoints of operations.
type builder struct {
	cfg     *OpenAPIConfig
	doc     *document
	client  *client
	headers []header // of every request
	limit   int
	partly  []Skipped // operations that are tools but for a part
}

// prepare checks what holds for every operation.
func (b *builder) prepare() error {
	cfg := b.cfg
	var err error
	if b.client, err = newClient(&cfg.Network); err != nil {
		return err
	}
	if cfg.BaseURL != "" {
		base, err := parseTemplate(cfg.BaseURL)
		if err != nil {
			return err
		}
		if base.query != nil || strings.ContainsAny(cfg.BaseURL, "{}?") {
			return errors.New("the base URL has neither arguments nor a query")
		}
		if err := b.client.guard.checkHost(hostOf(base.origin)); err != nil {
			return err
		}
	}
	if b.headers, err = parseHeaders(cfg.Headers, cfg.Basic); err != nil {
		return err
	}
	var refs []string
	note := func(where string, pieces []piece) error {
		for _, p := range pieces {
			if p.argument != "" {
				return fmt.Errorf("%s: an argument {%s} has no place here", where, p.argument)
			}
			if p.secret != "" {
				refs = append(refs, p.secret)
			}
		}
		return nil
	}
	for _, h := range b.headers {
		if err := note("header "+h.name, h.value); err != nil {
			return err
		}
	}
	components, _ := b.doc.root["components"].(map[string]any)
	schemes, _ := components["securitySchemes"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(cfg.Credentials)) {
		if _, ok := schemes[name]; !ok {
			return fmt.Errorf("credentials: the document has no security scheme %q, but %d others: %.200q", name, len(schemes), slices.Sorted(maps.Keys(schemes)))
		}
		pieces, err := parsePieces(cfg.Credentials[name])
		if err == nil {
			err = note("credentials: "+name, pieces)
		}
		if err != nil {
			return err
		}
		if len(pieces) == 0 {
			return fmt.Errorf("credentials: %s is empty", name)
		}
	}
	if b.limit = cfg.MaxResponse; b.limit == 0 {
		b.limit = DefaultMaxResponse
	}
	if b.limit < 0 || b.limit > protocol.MaxInlineResult {
		return fmt.Errorf("a maximum response of %d bytes is not between 0 and %d", b.limit, protocol.MaxInlineResult)
	}
	_, err = readSecrets(refs, cfg.Dir, cfg.LookupEnv)
	return err
}

// build makes the tool of one operation. Its error says what is in the way.
func (b *builder) build(op *operation) (tool.Tool, error) {
	if op.method == "TRACE" {
		return nil, errors.New("the method TRACE is not supported")
	}
	loaded, err := b.load(op)
	if err != nil {
		return nil, err
	}
	item := loaded.Paths.Map()[op.path]
	resolved := item.GetOperation(op.method)
	base, err := b.base(op)
	if err != nil {
		return nil, err
	}
	e := &endpoint{
		name: tool.Alias(op.name()), description: describe(op.key(), resolved), method: op.method, client: b.client,
		headers: slices.Clone(b.headers), answering: answering{limit: b.limit, binary: slices.Clone(b.cfg.Binary)}, settings: b.settings(op),
	}
	d := &draft{e: e, c: &converter{doc: b.doc, defs: map[string]any{}}, properties: map[string]any{}, wire: map[string]string{}}
	for _, h := range b.headers {
		d.fixed = append(d.fixed, h.name)
	}
	if err := d.fill(loaded, item, resolved, b.cfg.Credentials); err != nil {
		return nil, err
	}
	if err := d.path(base, op.path); err != nil {
		return nil, err
	}
	if e.secrets, err = readSecrets(e.refs(), b.cfg.Dir, b.cfg.LookupEnv); err != nil {
		return nil, err
	}
	if e.schema, err = d.schema(); err != nil {
		return nil, err
	}
	it, err := invoke.New(e) // refuses what a worker would refuse
	if err != nil {
		return nil, errors.New(protocol.ProblemOf(err).Message)
	}
	e.compiled = it.Schema()
	for _, part := range d.without {
		b.partly = append(b.partly, Skipped{Operation: op.String(), Reason: part, Served: true})
	}
	return e, nil
}

// load resolves one operation, alone with what it refers to, so that nothing that is wrong elsewhere in the document is in
// its way. Responses and callbacks are left out.
func (b *builder) load(op *operation) (*openapi3.T, error) {
	node := map[string]any{"responses": map[string]any{}}
	for _, key := range []string{"summary", "description", "parameters", "requestBody", "deprecated"} {
		if v, ok := op.node[key]; ok {
			node[key] = v
		}
	}
	item := map[string]any{strings.ToLower(op.method): node}
	if op.shared != nil {
		item["parameters"] = op.shared
	}
	security := b.doc.root["security"]
	if own, ok := op.node["security"]; ok {
		security = own
	}
	components := map[string]map[string]any{"securitySchemes": b.doc.schemes(security)}
	for _, part := range []any{item, components["securitySchemes"]} {
		if err := b.doc.closure(part, components); err != nil {
			return nil, err
		}
	}
	small := map[string]any{
		"openapi": b.doc.root["openapi"], "info": map[string]any{"title": "x", "version": "1"}, "paths": map[string]any{op.path: item}, "components": components,
	}
	if security != nil {
		small["security"] = security
	}
	raw, err := json.Marshal(small)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	if len(raw) > maxOperation {
		return nil, fmt.Errorf("what it refers to has %d bytes, more than %d", len(raw), maxOperation)
	}
	loader := openapi3.NewLoader()
	loaded, err := loader.LoadFromData(raw)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %s", head([]byte(firstLine(err.Error()))))
	}
	if item := loaded.Paths.Map()[op.path]; item == nil || item.GetOperation(op.method) == nil {
		return nil, errors.New("it cannot be read")
	}
	return loaded, nil
}

// schemes are the security schemes that requirements name.
func (d *document) schemes(requirements any) map[string]any {
	components, _ := d.root["components"].(map[string]any)
	all, _ := components["securitySchemes"].(map[string]any)
	named := map[string]any{}
	alternatives, _ := requirements.([]any)
	for _, needs := range alternatives {
		needs, _ := needs.(map[string]any)
		for name := range needs {
			if scheme, ok := all[name]; ok {
				named[name] = scheme
			}
		}
	}
	return named
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// name is what the operation is called.
func (o *operation) name() string {
	if o.id != "" {
		return o.id
	}
	words := strings.FieldsFunc(o.path, func(r rune) bool {
		return !(r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	return strings.Join(append([]string{strings.ToLower(o.method)}, words...), "_")
}

// describe is summary and description, within the limit of a declaration; of an operation that has neither, its method and
// path.
func describe(key string, op *openapi3.Operation) string {
	text := strings.TrimSpace(op.Summary)
	if more := strings.TrimSpace(op.Description); more != "" && more != text {
		text = strings.TrimSpace(text + "\n\n" + more)
	}
	if text == "" {
		text = key
	}
	if op.Deprecated {
		text = strings.TrimSpace(text + "\n\nDeprecated.")
	}
	const more = " ..."
	if len(text) > protocol.MaxDescription {
		cut := protocol.MaxDescription - len(more)
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + more
	}
	return text
}

func (b *builder) settings(op *operation) tool.Settings {
	s := tool.Settings{
		Effect: effectOf(op.method), Timeout: b.cfg.Timeout, QueueTimeout: b.cfg.QueueTimeout, ParkTimeout: b.cfg.ParkTimeout,
		Attempts: b.cfg.Attempts, MaxActive: b.cfg.MaxActive, Confirm: b.cfg.Confirm,
	}
	exact := false // an entry without * is the last word
	for _, key := range slices.Sorted(maps.Keys(b.cfg.Effects)) {
		if whole := !strings.Contains(key, "*"); op.fits(key) && (whole || !exact) {
			s.Effect, exact = b.cfg.Effects[key], whole
		}
	}
	return s
}

// base is the URL before the path of the operation.
func (b *builder) base(op *operation) (string, error) {
	if b.cfg.BaseURL != "" {
		return strings.TrimRight(b.cfg.BaseURL, "/"), nil
	}
	if len(op.servers) == 0 {
		return "", errNoServer
	}
	server, _ := op.servers[0].(map[string]any)
	text, _ := server["url"].(string)
	variables, _ := server["variables"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		variable, _ := variables[name].(map[string]any)
		value, _ := variable["default"].(string)
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	if strings.ContainsAny(text, "{}?#$") || !strings.Contains(text, "://") {
		return "", fmt.Errorf("its server %s is no URL of a host; give the base URL", visibleName(text))
	}
	return strings.TrimRight(text, "/"), nil
}
