package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// send says what there is to say to a session whose log was read to its end. An answer that cannot be given is told to the
// program, and the others are given.
func (u *run) send(ctx context.Context, replay *client.Replay) (client.Sent, error) {
	state, err := u.find(replay)
	if err != nil {
		return client.Sent{}, err
	}
	replay.Take() // the program has seen it
	u.replay = replay
	u.sent = client.Sent{Decisions: map[uint64]bool{}, Results: map[string]int{}}
	each := func(answers []*genai.FunctionResponse, give func(*genai.FunctionResponse) error) error {
		for _, r := range answers {
			err := give(r)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && !u.yield(nil, err):
				return errEnough
			}
		}
		return nil
	}
	err = each(u.said.decisions, func(r *genai.FunctionResponse) error { return u.decide(ctx, r) })
	if err == nil {
		err = each(u.said.results, func(r *genai.FunctionResponse) error { return u.complete(ctx, r) })
	}
	if err != nil || u.said.message == nil {
		return u.sent, err
	}
	delta, err := encode(state, u.delta)
	if err != nil {
		return u.sent, err
	}
	receipt, err := u.client.Send(ctx, u.app, u.id, u.said.message, client.WithStateDelta(delta))
	u.sent.Input = receipt.InputID
	return u.sent, err
}

// find checks that the session is the program's to speak to. It returns the state with which a new one begins.
func (u *run) find(replay *client.Replay) (map[string]any, error) {
	state, created := u.r.sessions.Created(u.r.cfg.AppName, u.user, u.name)
	switch owner := replay.User(); {
	case replay.Closed() != nil:
		return nil, replay.Closed()
	case owner == u.token:
		return nil, nil
	case owner == "" && (created || u.r.cfg.AutoCreateSession): // nobody has spoken to it, or was refused
		return state, nil
	}
	return nil, fmt.Errorf("session %s of user %s: %w; create it with the session service, or set AutoCreateSession", u.name, u.user, session.ErrNotFound)
}

func (u *run) decide(ctx context.Context, r *genai.FunctionResponse) error {
	call, err := u.replay.Confirmation(r.ID)
	if err != nil {
		return err
	}
	decision, err := decisionOf(r)
	if err != nil {
		return err
	}
	receipt, err := u.client.Decide(ctx, call, decision, "")
	switch {
	case err != nil:
		return err
	case receipt.Code != "":
		return &protocol.Error{Code: receipt.Code, Public: receipt.Message}
	}
	u.sent.Decisions[receipt.Seq] = true
	return nil
}

func (u *run) complete(ctx context.Context, r *genai.FunctionResponse) error {
	call, err := u.replay.Call(r.ID)
	if err != nil {
		return err
	}
	result, err := resultOf(r)
	if err != nil {
		return err
	}
	if _, err := u.client.Complete(ctx, call, result); err != nil {
		return err
	}
	u.sent.Results[call.Call] = call.Round
	return nil
}

// encode is state in the form of the wire; later values win.
func encode(state, delta map[string]any) (map[string]json.RawMessage, error) {
	if len(state)+len(delta) == 0 {
		return nil, nil
	}
	all := maps.Clone(state)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, delta)
	out := make(map[string]json.RawMessage, len(all))
	for key, v := range all {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, protocol.Wrap(err, protocol.CodeBadMessage, "the value of state key %q cannot be encoded", key)
		}
		out[key] = raw
	}
	return out, nil
}
