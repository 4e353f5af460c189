package functiontool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// RunJSON decodes args, which the schema accepts, calls the function and encodes what it returns.
func (f *function[TArgs, TResults]) RunJSON(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
	in, err := f.decode(args)
	if err != nil {
		return nil, err
	}
	return f.answer(ctx, in)
}

// Run takes arguments as ADK passes them, a map[string]any, and checks them first. A nil map stands for no arguments: the
// function gets a nil map, a nil pointer or a zero struct.
func (f *function[TArgs, TResults]) Run(ctx tool.Context, args any) (map[string]any, error) {
	in, err := f.take(args)
	if err != nil {
		return nil, err
	}
	out, err := f.answer(ctx, in)
	if err != nil {
		return nil, err
	}
	if string(out) == "null" && reflect.TypeFor[TResults]().Kind() == reflect.Pointer {
		return map[string]any{"result": nil}, nil
	}
	return invoke.Map(out)
}

// take checks and decodes arguments as ADK passes them.
func (f *function[TArgs, TResults]) take(args any) (in TArgs, err error) {
	m, ok := args.(map[string]any)
	if !ok {
		return in, fmt.Errorf("unexpected args type, got: %T", args)
	}
	raw, err := invoke.Encode(m)
	if err != nil {
		return in, fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	if raw, err = f.schema.Normalize(raw); err != nil {
		return in, invalid(err)
	}
	if m == nil {
		return in, nil
	}
	return f.decode(raw)
}

func (f *function[TArgs, TResults]) answer(ctx tool.Context, in TArgs) (json.RawMessage, error) {
	out, err := f.handler(ctx, in)
	if err != nil {
		return nil, err
	}
	raw, err := invoke.Encode(out)
	if err != nil {
		return nil, err
	}
	if f.answers != nil {
		if err := f.answers.ValidateAnswer(raw); err != nil {
			return nil, fmt.Errorf("the tool ran, but its answer does not fit its output schema: %s", public(err))
		}
	}
	return raw, nil
}

func (f *function[TArgs, TResults]) decode(args json.RawMessage) (TArgs, error) {
	var in TArgs
	err := f.decodeInto(args, &in)
	if err == nil {
		return in, nil
	}
	if plain, changed := plainIntegers(args); changed { // 5.0 and 1e2 are integers to the schema, not to encoding/json
		var again TArgs
		if f.decodeInto(plain, &again) == nil {
			return again, nil
		}
	}
	var zero TArgs
	return zero, invalid(err)
}

func (f *function[TArgs, TResults]) decodeInto(args json.RawMessage, in *TArgs) error {
	if !f.loose {
		return protocol.Decode(args, in, protocol.ArgsLimits)
	}
	if f.strict {
		if err := protocol.Decode(args, new(TArgs), protocol.ArgsLimits); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(in); err != nil {
		return err
	}
	floats(reflect.ValueOf(in).Elem())
	return nil
}

// invalid makes an error about the arguments that names the field.
func invalid(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%w: /%s: %s does not fit a Go %s", ErrInvalidArgument, fieldPointer(e.Field), e.Value, e.Type)
	}
	return fmt.Errorf("%w: %s", ErrInvalidArgument, public(err))
}

func fieldPointer(field string) string {
	return string(bytes.ReplaceAll([]byte(field), []byte("."), []byte("/")))
}

func public(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Public
	}
	return err.Error()
}
