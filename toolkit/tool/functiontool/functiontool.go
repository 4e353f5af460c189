package functiontool

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// ErrInvalidArgument is in the chain of the errors of New about its type arguments, and of Run about its args.
var ErrInvalidArgument = errors.New("invalid argument")

// Config describes a function tool. Name and, for the model's sake, Description are needed; everything else may be zero.
type Config struct {
	Name        string
	Description string
	// InputSchema and OutputSchema replace the schemas inferred from the function's types. They are not compared with
	// those types. An answer that does not fit an OutputSchema given here is a failure, though the function has run.
	InputSchema  *jsonschema.Schema
	OutputSchema *jsonschema.Schema
	// IsLongRunning says that what the function returns is not its result yet: nil keeps the call waiting in silence,
	// anything else, a ticket say, is told to the model meanwhile. The result follows by the handle that
	// tool.Context.ResultHandle gives. An error ends the call as that of any other tool does.
	IsLongRunning bool
	// RequireConfirmation asks a person before each call. RequireConfirmationProvider, a func(TArgs) bool, decides it for
	// each call, on the worker, and overrides the flag altogether. It may be asked several times about one call.
	RequireConfirmation         bool
	RequireConfirmationProvider any

	// The settings of the tool's pool: see tool.Settings for what the zero values mean.
	Effect       tool.Effect
	Timeout      time.Duration
	QueueTimeout time.Duration
	ParkTimeout  time.Duration
	Attempts     int
	MaxActive    int
}

// Func is the function behind a tool. Its error is an answer that the model reads; tool.Retryable asks for another
// attempt. It may run many times at once.
type Func[TArgs, TResults any] func(tool.Context, TArgs) (TResults, error)

// New makes a tool of handler. TArgs is a struct or a map with string keys, or a pointer to one. The tool implements
// tool.RunnerJSON and tool.Configured, and with a provider tool.Asker.
//
// In the schema of a struct a field without omitempty is required, unknown properties are refused, and the jsonschema tag
// is the field's description, with or without "description=" before it. A recursive type becomes a $ref.
//
// New returns an error, naming the tool and the field, for a name that is not legal, a type that has no JSON form, a tag
// that begins with another WORD=, a schema that does not compile, and a provider that is no func(TArgs) bool.
func New[TArgs, TResults any](cfg Config, handler Func[TArgs, TResults]) (tool.Tool, error) {
	if err := protocol.CheckName(cfg.Name); err != nil {
		return nil, fmt.Errorf("function tool: %w", err)
	}
	fail := func(what string, err error) (tool.Tool, error) {
		return nil, fmt.Errorf("function tool %s: %s: %w", cfg.Name, what, err)
	}
	if handler == nil {
		return fail("function", fmt.Errorf("%w: it is nil", ErrInvalidArgument))
	}
	in := reflect.TypeFor[TArgs]()
	if err := checkArgs(in); err != nil {
		return fail("arguments", err)
	}
	f := &function[TArgs, TResults]{cfg: cfg, handler: handler, strict: cfg.InputSchema != nil, loose: holdsAny(in)}
	provider, ok := cfg.RequireConfirmationProvider.(func(TArgs) bool)
	if p := cfg.RequireConfirmationProvider; p != nil {
		if !ok || provider == nil {
			return fail("confirmation", fmt.Errorf("%w: RequireConfirmationProvider is a %T, want a func(%s) bool", ErrInvalidArgument, p, in))
		}
	}
	var err error
	if f.input, err = schemaFor(cfg.InputSchema, in); err != nil {
		return fail("arguments", err)
	}
	if f.schema, err = invoke.CompileSchema(f.input); err != nil {
		return fail("arguments", err)
	}
	if f.output, err = schemaFor(cfg.OutputSchema, reflect.TypeFor[TResults]()); err != nil {
		return fail("results", err)
	}
	if cfg.OutputSchema != nil {
		if f.answers, err = invoke.CompileOutput(f.output); err != nil {
			return fail("results", err)
		}
	}
	if provider != nil {
		return &asker[TArgs, TResults]{f, provider}, nil
	}
	return f, nil
}

func checkArgs(t reflect.Type) error {
	given := t
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String {
		return nil
	}
	return fmt.Errorf("%w: the type is %s, want a struct or a map with string keys", ErrInvalidArgument, given)
}

// function is immutable once made.
type function[TArgs, TResults any] struct {
	cfg     Config
	handler Func[TArgs, TResults]
	input   json.RawMessage
	output  json.RawMessage
	schema  *invoke.Schema
	answers *invoke.Schema // nil unless an output schema was given
	strict  bool           // the schema was given, so that keys must be compared with the type's
	loose   bool           // TArgs holds an any, whose numbers need care
}

func (f *function[TArgs, TResults]) Name() string        { return f.cfg.Name }
func (f *function[TArgs, TResults]) Description() string { return f.cfg.Description }
func (f *function[TArgs, TResults]) IsLongRunning() bool { return f.cfg.IsLongRunning }

func (f *function[TArgs, TResults]) Settings() tool.Settings {
	return tool.Settings{
		Effect: f.cfg.Effect, Timeout: f.cfg.Timeout, QueueTimeout: f.cfg.QueueTimeout, Attempts: f.cfg.Attempts, MaxActive: f.cfg.MaxActive,
		ParkTimeout: f.cfg.ParkTimeout, Confirm: f.cfg.RequireConfirmation && f.cfg.RequireConfirmationProvider == nil,
	}
}

func (f *function[TArgs, TResults]) Declaration() *genai.FunctionDeclaration {
	d := &genai.FunctionDeclaration{Name: f.cfg.Name, Description: f.cfg.Description, ParametersJsonSchema: f.input, ResponseJsonSchema: f.output}
	if f.cfg.IsLongRunning {
		if d.Description != "" {
			d.Description += "\n\n"
		}
		d.Description += tool.LongRunningNote
	}
	return d
}

// asker is a function with a provider.
type asker[TArgs, TResults any] struct {
	*function[TArgs, TResults]
	provider func(TArgs) bool
}

// AsksConfirmation decodes args as for the function and asks the provider.
func (a *asker[TArgs, TResults]) AsksConfirmation(args json.RawMessage) (bool, error) {
	in, err := a.decode(args)
	if err != nil {
		return false, err
	}
	return a.provider(in), nil
}
