package client

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Receipt says where an accepted input is.
type Receipt struct {
	App     string `json:"app"`
	Session string `json:"session"`
	InputID string `json:"input"`
	Seq     uint64 `json:"seq"` // stream sequence in INPUT; in APPROVAL without an input
}

// Text is a message of one part of text.
func Text(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleUser) }

// SendOption changes one input.
type SendOption func(*protocol.Input)

// WithInputID names the input, so that sending it to the session again is the same input. Without it every Send is a new
// one. An input that starts a session gives it its own id.
func WithInputID(id string) SendOption { return func(in *protocol.Input) { in.ID = id } }

// WithStateDelta sets keys of the session's state before the run.
func WithStateDelta(delta map[string]json.RawMessage) SendOption {
	return func(in *protocol.Input) { in.StateDelta = delta }
}

// Send says content to a session of app and returns once the broker has stored it: from then on the run goes on without
// the caller. An empty session starts a new one, named as the input. It returns code unknown_app when no coordinator has ever served app,
// bad_name, bad_id and too_large.
//
// Function responses named adk_request_confirmation are decisions on what the session asks, as ADK's clients send them: the
// rest of content is said to the session first, then each is published as the client's own decision and its receipt waited
// for, as Decide does. An error after the rest was stored comes with its Receipt; sending all of it again with the same
// input id says nothing twice. A decision that does not count is an error with its receipt's code. The Receipt of decisions
// alone has no InputID: there is no input to wait for.
func (c *Client) Send(ctx context.Context, app, session string, content *genai.Content, opts ...SendOption) (Receipt, error) {
	content, replies, err := parted(content)
	if err != nil {
		return Receipt{}, err
	}
	if len(replies) > 0 && session == "" {
		return Receipt{}, protocol.Errorf(protocol.CodeUsage, "a decision without a session: name the one that asks")
	}
	r := Receipt{App: app, Session: session}
	if content != nil || len(replies) == 0 {
		data, err := json.Marshal(content)
		if err != nil {
			return Receipt{}, protocol.Wrap(err, protocol.CodeBadMessage, "the message cannot be encoded")
		}
		if r, err = c.send(ctx, app, session, protocol.Input{Kind: protocol.InputMessage, Content: data}, opts...); err != nil {
			return Receipt{}, err
		}
	}
	if len(replies) > 0 {
		for _, check := range []error{protocol.CheckName(app), protocol.CheckID(session)} {
			if check != nil {
				return r, check
			}
		}
		seq, err := c.decideAll(ctx, app, session, replies)
		if r.InputID == "" {
			r.Seq = seq
		}
		return r, err
	}
	return r, nil
}

// SendCall asks for one durable call of a tool, without a model, in a session of its own. args is a JSON object. Whether
// the call is refused is seen by Follow and Wait with app protocol.CallsApp. It returns code usage for an id that another
// call has; of two that are sent at once both may be accepted, and SameCall tells whose answer it is.
func (c *Client) SendCall(ctx context.Context, tool string, args json.RawMessage, opts ...SendOption) (Receipt, error) {
	if err := protocol.CheckName(tool); err != nil {
		return Receipt{}, err
	}
	if err := protocol.Check(args, protocol.ArgsLimits); err != nil {
		return Receipt{}, err
	}
	var named protocol.Input
	for _, opt := range opts {
		opt(&named)
	}
	if named.ID != "" && protocol.CheckID(named.ID) == nil {
		if err := c.SameCall(ctx, named.ID, tool, args); err != nil {
			return Receipt{}, err
		}
	}
	return c.send(ctx, protocol.CallsApp, "", protocol.Input{Kind: protocol.InputCall, Call: &protocol.ClientCall{Tool: tool, Args: args}}, opts...)
}

func (c *Client) send(ctx context.Context, app, session string, in protocol.Input, opts ...SendOption) (Receipt, error) {
	in.V, in.ID = protocol.Version, c.cfg.NewID()
	for _, opt := range opts {
		opt(&in)
	}
	if session == "" {
		session = in.ID // so that sending the same input again finds the same session
	}
	if err := protocol.CheckName(app); err != nil {
		return Receipt{}, err
	}
	for _, id := range []string{session, in.ID} {
		if err := protocol.CheckID(id); err != nil {
			return Receipt{}, err
		}
	}
	data, err := json.Marshal(in)
	if err != nil {
		return Receipt{}, protocol.Wrap(err, protocol.CodeBadMessage, "input %s cannot be encoded", in.ID)
	}
	if _, err := protocol.DecodeInput(data); err != nil {
		return Receipt{}, err // the receiver would refuse it
	}
	if err := c.checkServed(ctx, app); err != nil {
		return Receipt{}, err
	}
	header := natswire.Header{}
	propagation.TraceContext{}.Inject(ctx, header)
	fault.Point("K1")
	ack, err := c.cfg.Bus.Publish(ctx, natswire.Msg{Subject: c.cfg.Names.InputSubject(app, c.cfg.Client, session), Header: header, Data: data})
	if err != nil {
		return Receipt{}, err
	}
	fault.Point("K2")
	return Receipt{App: app, Session: session, InputID: in.ID, Seq: ack.Seq}, nil
}

// checkServed refuses an app that no coordinator has ever served: its input would lie there unseen.
func (c *Client) checkServed(ctx context.Context, app string) error {
	if _, ok := c.served.Load(app); ok {
		return nil
	}
	_, err := c.cfg.Bus.ConsumerState(ctx, c.cfg.Names.Input(), app)
	switch {
	case err == nil:
		c.served.Store(app, struct{}{})
		return nil
	case protocol.CodeOf(err) != protocol.CodeNotFound:
		return err
	case app == protocol.CallsApp:
		return protocol.Errorf(protocol.CodeUnknownApp, "no coordinator has ever run here; start one: toolfabric up, or toolfabric coordinator")
	default:
		return protocol.Errorf(protocol.CodeUnknownApp, "no coordinator has ever served agent %q; start one that knows it: toolfabric up --agents DIR, or toolfabric coordinator --agents DIR", app)
	}
}
