package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/toolfabric/toolfabric/protocol"
)

// Call makes one durable call of a tool and waits for its answer: it outlives the death of the worker that runs it and of
// the coordinator that drives it, and of the caller, who may Wait again. One that needs a person's word, or a result from
// outside, is waited for as long as ctx lasts. A call that ended is a Result, also when the tool
// failed, nobody took it in time or its outcome is unknown. A call that was refused is an error: unknown_tool,
// schema_violation, bad_message, unknown_app, and usage for an id that another call has.
func (c *Client) Call(ctx context.Context, tool string, args json.RawMessage, opts ...SendOption) (protocol.Result, error) {
	receipt, err := c.SendCall(ctx, tool, args, opts...)
	if err != nil {
		return protocol.Result{}, err
	}
	out, err := c.WaitEnd(ctx, receipt.App, receipt.Session, receipt.InputID)
	if err == nil {
		err = c.SameCall(ctx, receipt.InputID, tool, args)
	}
	if err != nil {
		return protocol.Result{}, err
	}
	return CallResult(out)
}

// CallResult is the answer of a client's call, or the error that Call documents.
func CallResult(out Outcome) (protocol.Result, error) {
	switch {
	case out.Result != nil && !out.Refused:
		return *out.Result, nil
	case out.Problem != nil:
		return protocol.Result{}, out.Err()
	default:
		return protocol.Result{}, protocol.Errorf(protocol.CodeInternal, "the call of session %s ended without an answer", out.Session)
	}
}

// Body reads a whole value of which a result holds a capped view. It returns not_found, and bad_message for a body that is
// not the one the reference names.
func (c *Client) Body(ctx context.Context, ref protocol.Ref) ([]byte, error) {
	data, err := c.cfg.Bus.GetObject(ctx, ref.Name)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	if int64(len(data)) != ref.Size || hex.EncodeToString(sum[:]) != ref.SHA256 {
		return nil, protocol.Errorf(protocol.CodeBadMessage, "object %s is not what its reference says: %d bytes, want %d", ref.Name, len(data), ref.Size)
	}
	return data, nil
}
