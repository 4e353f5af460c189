package cli

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolfabric/toolfabric/cmd/internal/workerfile"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
	"github.com/toolfabric/toolfabric/worker"
)

// requestOptions are flags of what requests have in common.
type requestOptions struct{ headers []string }

func (o *requestOptions) add(f *pflag.FlagSet, q *workerfile.Request) {
	f.StringArrayVar(&o.headers, "header", nil, "`NAME: VALUE` sent with each request; ${env:NAME} and ${file:PATH} stand for a credential; may be repeated")
	f.StringVar(&q.Basic, "basic", "", "`USER:PASSWORD`, as shop:${env:SHOP_PASSWORD}")
	f.StringArrayVar(&q.Allow, "allow", nil, "`ADDRESS`, block (10.0.0.0/8) or host that is reached although it is not public; may be repeated")
	f.IntVar(&q.MaxResponse, "max-response", 0, "`BYTES` of a response that are read (default 262144)")
	f.StringArrayVar(&q.Binary, "binary", nil, "media `TYPE` beside JSON and text that is answered, as image/*; may be repeated")
}

func (o *requestOptions) read(q *workerfile.Request) error {
	q.Lookup = os.LookupEnv
	q.Headers = map[string]string{}
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return protocol.Errorf(protocol.CodeUsage, "--header %q: it is NAME: VALUE", name)
		}
		if _, twice := q.Headers[name]; twice {
			return protocol.Errorf(protocol.CodeUsage, "--header %s is there twice", name)
		}
		q.Headers[name] = strings.TrimSpace(value)
	}
	return nil
}

// httpOptions are the flags of worker http.
type httpOptions struct {
	workerfile.Tool
	workerfile.HTTP
	requestOptions
	poolOptions
	schema string
}

func (a *app) workerHTTPCmd() *cobra.Command {
	var o httpOptions
	cmd := &cobra.Command{
		Use: "http --name TOOL --description TEXT --url URL [flags]", Short: "Serve one HTTP endpoint as a tool", Args: cobra.NoArgs,
		Long: `Http serves an endpoint. {name} in the path or in a value of the query of --url, or in a --header, stands for the call's
argument of that name; scheme, host and port are fixed. Arguments that stand nowhere are the JSON body of a POST, PUT, PATCH or
DELETE. Without --schema the arguments are texts, those of the path required. ${env:NAME} and ${file:PATH} in a header, in the
query or in --basic stand for a credential: models, logs and answers never see it. Put the URL in single quotes.

Only public addresses are reached, whatever a name resolves to and wherever a redirect leads; --allow names others. Proxies of
the environment are not used. GET is taken to read, PUT and DELETE to be idempotent, and both are tried again; anything else runs
at most once, with the call's id as Idempotency-Key. --effect says otherwise.`,
		Example: `  toolfabric worker http --name weather --description "Tells the weather of a city" --url 'https://api.example.com/v1/{city}?units={units}'
  toolfabric worker http --name order --description "Places an order" --method POST --url https://shop.example.com/orders \
    --schema order.json --header 'Authorization: Bearer ${env:SHOP_TOKEN}' --confirm
  toolfabric worker http --name stock --description "Tells what is in stock" --url 'http://10.2.0.7:8080/stock/{item}' --allow 10.2.0.7`,
	}
	f := cmd.Flags()
	f.StringVar(&o.Tool.Name, "name", "", "the tool's `NAME`: letters, digits, _ and -")
	f.StringVar(&o.Description, "description", "", "what the tool does, for models: `TEXT`")
	f.StringVar(&o.URL, "url", "", "`URL` of the endpoint, with {name} for arguments")
	f.StringVar(&o.Method, "method", "", "GET, HEAD, OPTIONS, POST, PUT, PATCH or DELETE (default GET)")
	f.StringVar(&o.schema, "schema", "", "`FILE` with the JSON Schema of the arguments")
	f.StringVar(&o.Body, "body", "", "what the body is made of: json, form, none or {name} for one argument (default json, of arguments that stand nowhere else)")
	o.requestOptions.add(f, &o.Request)
	o.poolOptions.add(f, &o.Pool, "by the method")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		t, err := o.build(f)
		if err != nil {
			return err
		}
		return a.work(ctx, worker.Config{Tools: []tool.Tool{t}, Slots: o.slots, Grace: o.grace})
	})
	return cmd
}

func (o *httpOptions) build(f *pflag.FlagSet) (tool.Tool, error) {
	switch {
	case o.Tool.Name == "":
		return nil, protocol.Errorf(protocol.CodeUsage, "the tool needs a --name")
	case o.Description == "":
		return nil, protocol.Errorf(protocol.CodeUsage, "tool %s needs a --description: models choose tools by it", o.Tool.Name)
	case o.URL == "":
		return nil, protocol.Errorf(protocol.CodeUsage, "tool %s needs a --url", o.Tool.Name)
	}
	if err := o.poolOptions.check(f, &o.Pool); err != nil {
		return nil, err
	}
	if err := o.requestOptions.read(&o.Request); err != nil {
		return nil, err
	}
	if o.schema != "" {
		var err error
		if o.Schema, err = workerfile.ReadSchema(o.schema); err != nil {
			return nil, err
		}
	}
	o.Tool.HTTP = &o.HTTP
	return o.Tool.Build()
}

// openAPIOptions are the flags of worker openapi.
type openAPIOptions struct {
	workerfile.OpenAPI
	requestOptions
	poolOptions
	credentials, effects []string
}

func (a *app) workerOpenAPICmd() *cobra.Command {
	var o openAPIOptions
	cmd := &cobra.Command{
		Use: "openapi --document FILE|URL (--base-url URL | --servers) [flags]", Short: "Serve the operations of an OpenAPI document",
		Args: cobra.NoArgs,
		Long: `Openapi serves each operation of an OpenAPI 3 document as a pool of its own, named by its operationId, or by its method and path.
Parameters are arguments of their names; a body, JSON or a form, is the argument body. An operation that cannot be served is
named in the log with the reason, and hides no other. References are followed inside the document only.

Requests go to --base-url; the document's own servers are used with --servers only. Security schemes of the document are bound
with --credential, each operation gets what it asks for. Otherwise it is as in worker http.`,
		Example: `  toolfabric worker openapi --document petstore.yaml --base-url https://pets.example.com/v1 --only 'GET *' --only createPet
  toolfabric worker openapi --document https://pets.example.com/openapi.json --servers --prefix pets --credential 'api_key=${env:PET_KEY}'`,
	}
	f := cmd.Flags()
	f.StringVar(&o.Document, "document", "", "`FILE` or URL of the document, JSON or YAML")
	f.StringVar(&o.BaseURL, "base-url", "", "`URL` of the API, to which the document's paths are added")
	f.BoolVar(&o.Servers, "servers", false, "send requests to the servers that the document names")
	f.StringArrayVar(&o.Only, "only", nil, "serve this `OPERATION` only: an operationId, or a method and path as 'GET /pets'; * stands for any text; may be repeated")
	f.StringVar(&o.Prefix, "prefix", "", "`NAME` that with a _ stands before each tool's name")
	f.StringArrayVar(&o.credentials, "credential", nil, "`SCHEME=CREDENTIAL` for a security scheme of the document, as 'api_key=${env:KEY}'; may be repeated")
	f.StringArrayVar(&o.effects, "effect", nil, "`OPERATION=CLASS`: what it does to the world, read, idempotent or at_most_once (default by the method); may be repeated")
	o.requestOptions.add(f, &o.Request)
	o.poolOptions.add(f, &o.Pool, "")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		if err := o.read(f); err != nil {
			return err
		}
		tools, err := workerfile.File{OpenAPI: []workerfile.OpenAPI{o.OpenAPI}}.Build(ctx, a.skipped)
		if err != nil {
			return err
		}
		return a.work(ctx, worker.Config{Tools: tools, Slots: o.slots, Grace: o.grace})
	})
	return cmd
}

func (o *openAPIOptions) read(f *pflag.FlagSet) error {
	switch {
	case o.Document == "":
		return protocol.Errorf(protocol.CodeUsage, "which document? name a file or a URL with --document")
	case o.BaseURL == "" && !o.Servers:
		return protocol.Errorf(protocol.CodeUsage, "where is the API? Give its --base-url, or --servers to use the document's own")
	}
	o.OpenAPI.Name = o.Document
	if err := o.poolOptions.check(f, &o.Pool); err != nil {
		return err
	}
	if err := o.requestOptions.read(&o.Request); err != nil {
		return err
	}
	o.Credentials = map[string]string{}
	for _, pair := range o.credentials {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || value == "" {
			return protocol.Errorf(protocol.CodeUsage, "--credential %q: it is SCHEME=CREDENTIAL", name)
		}
		o.Credentials[name] = value
	}
	o.Effects = map[string]protocol.Effect{}
	for _, pair := range o.effects {
		i := strings.LastIndexByte(pair, '=')
		if i < 1 {
			return protocol.Errorf(protocol.CodeUsage, "--effect %q: it is OPERATION=CLASS", pair)
		}
		effect := protocol.Effect(pair[i+1:])
		if err := workerfile.CheckEffect(effect); err != nil {
			return err
		}
		o.Effects[pair[:i]] = effect
	}
	return nil
}

// skipped tells of an operation that is no tool, or not all of it.
func (a *app) skipped(set string, s httptool.Skipped) {
	what := "an operation is not served"
	if s.Served {
		what = "a part of an operation is left out"
	}
	a.logger(slog.LevelInfo).Warn(what, "document", set, "operation", s.Operation, "reason", s.Reason)
}
