package worker

import (
	"context"
	"encoding/json"
	"math"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// Complete gives a long-running call its result: what its tool would have returned, any JSON-encodable value. handle is
// what the tool got from tool.Context.ResultHandle, or what the last Interim returned. No worker is needed: any process
// with a worker's permissions for the tool may call it, at any time until the call's park timeout has passed, also after
// its own restart.
//
// It returns nil once the result is stored; the session then goes on by itself. The first result of a round stays: an
// *Error of code already_answered says that another one, the end of the call or this very result, stored by a try whose
// ack was lost, is there. Other codes are bad_id for a handle that is none, bad_message for a value that cannot be
// sent, too_large beyond protocol.MaxInlineResult, and those of the bus; after these it may be called again.
func Complete(ctx context.Context, bus natswire.Bus, n natswire.Names, handle string, result any) error {
	value, err := invoke.Object(result)
	if err != nil {
		return err
	}
	_, err = answerLater(ctx, bus, n, handle, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: value})
	return err
}

// Fail is Complete for work that came to nothing: the model reads why, which is not nil.
func Fail(ctx context.Context, bus natswire.Bus, n natswire.Names, handle string, why error) error {
	_, err := answerLater(ctx, bus, n, handle, protocol.Result{Outcome: protocol.OutcomeFailed, Value: protocol.ErrorValue(why.Error())})
	return err
}

// Interim replaces what a waiting call shows, and what its model is told while it waits. percent above 0, at most 100, is
// added under the key "percent"; status is any JSON-encodable value, and nil is nothing but that. It answers the handle's
// round and returns the handle of the next one, to be stored in the place of the one it was given: that one is used up. It
// is stored durably and read by the session each time: for a bar that moves, a few in a minute are many. Errors are those
// of Complete; after already_answered the handle that it returns all the same is the one to go on with, unless the call
// has ended.
func Interim(ctx context.Context, bus natswire.Bus, n natswire.Names, handle string, status any, percent float64) (next string, err error) {
	value, err := statusOf(status, percent)
	if err != nil {
		return "", err
	}
	return answerLater(ctx, bus, n, handle, protocol.Result{Outcome: protocol.OutcomePending, Value: value})
}

// statusOf is what a model is told of a call that waits; nil is nothing.
func statusOf(status any, percent float64) (json.RawMessage, error) {
	told := percent > 0 // NaN is not
	if status == nil && !told {
		return nil, nil
	}
	if !told {
		return invoke.Object(status)
	}
	keys := map[string]any{}
	if status != nil {
		value, err := invoke.Object(status)
		if err != nil {
			return nil, err
		}
		if keys, err = invoke.Map(value); err != nil {
			return nil, err
		}
	}
	keys["percent"] = math.Min(percent, 100)
	return invoke.Object(keys)
}

// answerLater stores a result in the mailbox of the round that handle names, and returns the handle of the next round, also
// when the round was answered before.
func answerLater(ctx context.Context, bus natswire.Bus, n natswire.Names, handle string, r protocol.Result) (string, error) {
	h, err := protocol.ParseHandle(handle)
	if err != nil {
		return "", err
	}
	_, err = natswire.StoreWake(ctx, bus, n, h.App, h.Tool, h.Session, h.Call, h.Round, nil, r)
	switch protocol.CodeOf(err) {
	case "":
		return h.Next().String(), nil
	case protocol.CodeAnswered:
		return h.Next().String(), protocol.Wrap(err, protocol.CodeAnswered, "round %d of call %s of tool %s was answered before: the first answer stays, and this one is dropped", h.Round, h.Call, h.Tool)
	}
	return "", protocol.Wrap(err, protocol.CodeOf(err), "the result of call %s of tool %s could not be stored; try again", h.Call, h.Tool)
}
