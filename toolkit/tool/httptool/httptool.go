package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// DefaultMaxResponse is how many bytes of a response are read when Config does not say.
const DefaultMaxResponse = 256 << 10

// Config describes an endpoint as a tool. Name and URL are needed.
type Config struct {
	Name        string
	Description string
	// Method is GET, HEAD, OPTIONS, POST, PUT, PATCH or DELETE; empty is GET.
	Method string
	// URL is where the request goes: https://api.example.com/v1/{city}/days?units={units}&key=${env:KEY}. {name} in a path
	// or in a value of the query becomes the argument of that name, percent-encoded; scheme, host, port and names of the
	// query are fixed. In a path a value is a part of one segment: one that is missing, or that somebody on its way could
	// take for several (a slash, "..", also encoded), is refused. In the query an argument that the call leaves out takes
	// its pair with it, and a list repeats the name.
	URL string
	// Headers are sent with each request. A value may hold {name} and ${env:NAME} or ${file:PATH}; one whose argument the
	// call leaves out is not sent, and one with a line end is refused.
	Headers map[string]string
	// Basic is user:password, usually with a credential: shop:${env:SHOP_PASSWORD}. It is sent as Authorization.
	Basic string
	// Body says what the body is made of: "json" or "form", an object of the arguments that stand neither in the URL nor in
	// a header; "{name}", one argument as JSON; "none". Empty is json when there are such arguments, else none.
	Body string
	// Schema is the JSON Schema of the call's arguments. Nil is a schema of texts: those that fill the path are required.
	Schema json.RawMessage
	// MaxResponse is how many bytes of a response are read, after decompression; 0 is DefaultMaxResponse, the limit is
	// protocol.MaxInlineResult. Text is cut there, anything else fails.
	MaxResponse int
	// Binary lists media types, such as image/png or image/*, that are answered as data: URIs. Others that are neither JSON
	// nor text fail.
	Binary []string
	// Network is what may be reached beside public addresses.
	Network Network
	// LookupEnv finds variables of the environment for credentials; nil is os.LookupEnv. Dir is the folder of relative files
	// of credentials; empty is the working directory.
	LookupEnv func(name string) (string, bool)
	Dir       string

	// The settings of the tool's pool: see tool.Settings for what the zero values mean, but for Effect: empty goes by the
	// method, read for GET, HEAD and OPTIONS, idempotent for PUT and DELETE, at_most_once for POST and PATCH.
	Effect       tool.Effect
	Timeout      time.Duration
	QueueTimeout time.Duration
	ParkTimeout  time.Duration
	Attempts     int
	MaxActive    int
	Confirm      bool
}

// New makes a tool of an endpoint. The tool implements tool.RunnerJSON, tool.Configured and io.Closer, which closes
// connections that are idle; it may be used afterwards.
//
// The answer is the body: JSON as it is, with every digit, text as a string, and for a body that is empty an object of the
// status and a few headers. A status of 400 or more is the tool's error, with the beginning of the body. It is
// tool.Retryable for 429, 502, 503 and 504, as a connection that fails is, when the effect class lets the call be repeated
// or nothing was sent. Calls that do more than read carry the header Idempotency-Key with the call's id, all carry
// traceparent. New returns an *Error of code bad_name, bad_declaration or usage.
func New(cfg Config) (tool.Tool, error) {
	if err := protocol.CheckName(cfg.Name); err != nil {
		return nil, err
	}
	usage := func(err error) error { return protocol.Errorf(protocol.CodeUsage, "tool %s: %s", cfg.Name, err) }
	c, err := newClient(&cfg.Network)
	if err != nil {
		return nil, usage(err)
	}
	e := &endpoint{name: cfg.Name, description: cfg.Description, method: cfg.Method, client: c, schema: slices.Clone(cfg.Schema)}
	e.answering = answering{limit: cfg.MaxResponse, binary: slices.Clone(cfg.Binary)}
	if err := e.prepare(&cfg); err != nil {
		return nil, usage(err)
	}
	if e.compiled, err = invoke.CompileSchema(e.schema); err != nil {
		return nil, protocol.Errorf(protocol.CodeOf(err), "tool %s: %s", cfg.Name, protocol.ProblemOf(err).Message)
	}
	e.settings = tool.Settings{
		Effect: cfg.Effect, Timeout: cfg.Timeout, QueueTimeout: cfg.QueueTimeout, ParkTimeout: cfg.ParkTimeout,
		Attempts: cfg.Attempts, MaxActive: cfg.MaxActive, Confirm: cfg.Confirm,
	}
	if e.settings.Effect == "" {
		e.settings.Effect = effectOf(e.method)
	}
	return e, nil
}

// effectOf is what a method does to the world, by RFC 9110, section 9.2.
func effectOf(method string) tool.Effect {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return tool.Read
	case http.MethodPut, http.MethodDelete:
		return tool.Idempotent
	}
	return tool.AtMostOnce
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// endpoint is immutable once made.
type endpoint struct {
	name, description string
	method            string
	url               template
	headers           []header
	cookies           []cookie
	body              body
	secrets           *secrets
	client            *client
	answering         answering
	schema            json.RawMessage
	compiled          *invoke.Schema
	settings          tool.Settings
}

func (e *endpoint) prepare(cfg *Config) error {
	switch {
	case e.method == "":
		e.method = http.MethodGet
	case !slices.Contains(methods, e.method):
		return fmt.Errorf("the method %.40q is none of %s", e.method, strings.Join(methods, ", "))
	}
	if e.answering.limit == 0 {
		e.answering.limit = DefaultMaxResponse
	}
	if e.answering.limit < 0 || e.answering.limit > protocol.MaxInlineResult {
		return fmt.Errorf("a maximum response of %d bytes is not between 0 and %d", e.answering.limit, protocol.MaxInlineResult)
	}
	var err error
	if e.url, err = parseTemplate(cfg.URL); err != nil {
		return err
	}
	if err := e.client.guard.checkHost(hostOf(e.url.origin)); err != nil {
		return err
	}
	if e.headers, err = parseHeaders(cfg.Headers, cfg.Basic); err != nil {
		return err
	}
	if err := e.place(cfg.Body); err != nil {
		return err
	}
	e.secrets, err = readSecrets(e.refs(), cfg.Dir, cfg.LookupEnv)
	return err
}

func parseHeaders(named map[string]string, basic string) ([]header, error) {
	var all []header
	for _, name := range slices.Sorted(maps.Keys(named)) {
		h, err := parseHeader(name, named[name])
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o header) bool { return o.name == h.name }) {
			return nil, fmt.Errorf("header %s is there twice", h.name)
		}
		all = append(all, h)
	}
	if basic == "" {
		return all, nil
	}
	if !strings.Contains(withoutPlaces(basic), ":") {
		return nil, errors.New("basic: write user:password, as in shop:${env:SHOP_PASSWORD}")
	}
	h, err := parseHeader("Authorization", basic)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(o header) bool { return o.name == h.name }) {
		return nil, errors.New("both basic and the header Authorization are there; leave one out")
	}
	h.basic = true
	return append(all, h), nil
}

// refs are the credentials that the request names.
func (e *endpoint) refs() []string {
	var refs []string
	for p := range e.pieces() {
		if p.secret != "" && !slices.Contains(refs, p.secret) {
			refs = append(refs, p.secret)
		}
	}
	return refs
}

// pieces goes over all places of the request but the body.
func (e *endpoint) pieces() func(yield func(piece) bool) {
	return func(yield func(piece) bool) {
		var all [][]piece
		for _, s := range e.url.path {
			all = append(all, s)
		}
		for _, q := range e.url.query {
			all = append(all, q.value)
		}
		for _, h := range e.headers {
			all = append(all, h.value)
		}
		for _, c := range e.cookies {
			all = append(all, c.value)
		}
		for _, pieces := range all {
			for _, p := range pieces {
				if !yield(p) {
					return
				}
			}
		}
	}
}

func (e *endpoint) Name() string            { return e.name }
func (e *endpoint) Description() string     { return e.description }
func (e *endpoint) IsLongRunning() bool     { return false }
func (e *endpoint) Settings() tool.Settings { return e.settings }

func (e *endpoint) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: e.name, Description: e.description, ParametersJsonSchema: e.schema}
}

// Close closes idle connections.
func (e *endpoint) Close() error {
	e.client.close()
	return nil
}
