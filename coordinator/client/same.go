package client

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// SameCall returns code usage, naming the difference, when the call of an id, as the log has it, is another one than that
// of tool with args: its answer is not the answer to this call. A call that is not in the log yet is nobody else's.
func (c *Client) SameCall(ctx context.Context, id, tool string, args json.RawMessage) error {
	log, err := c.Log(ctx, protocol.CallsApp, id, 0)
	if protocol.CodeOf(err) == protocol.CodeUnknownSession {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range log {
		for _, in := range e.Event.Inputs {
			if in.ID != id || in.Call == nil {
				continue
			}
			if diff := difference(*in.Call, protocol.ClientCall{Tool: tool, Args: args}); diff != "" {
				return protocol.Errorf(protocol.CodeUsage, "the id %s is that of another call: %s; give this call an id of its own", id, diff)
			}
			return nil
		}
	}
	return nil
}

// difference says in what two calls differ; empty when they are the same.
func difference(was, is protocol.ClientCall) string {
	if was.Tool != is.Tool {
		return "that one was of tool " + was.Tool + ", not of " + is.Tool
	}
	before, after := fields(was.Args), fields(is.Args)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var diff []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		x, had := before[k]
		y, has := after[k]
		switch {
		case !has:
			diff = append(diff, "it had /"+k)
		case !had:
			diff = append(diff, "it had no /"+k)
		case !reflect.DeepEqual(x, y):
			diff = append(diff, "its /"+k+" was "+short(x)+", not "+short(y))
		}
	}
	if more := len(diff) - 3; more > 0 {
		diff = append(diff[:3], "and more")
	}
	return strings.Join(diff, ", ")
}

func fields(args json.RawMessage) map[string]any {
	m := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	_ = d.Decode(&m) // what is no object was refused by whoever read it
	return m
}

func short(v any) string {
	text, _ := protocol.Encode(v)
	if len(text) > 60 {
		return strings.ToValidUTF8(string(text[:60]), "") + "…"
	}
	return string(text)
}
