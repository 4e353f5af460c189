package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/artifact"
	"github.com/toolfabric/toolfabric/toolkit/memory"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// toolContext is what one execution sees. It is dead once Run returned: reports and state changes of a tool that was
// left behind go nowhere.
type toolContext struct {
	context.Context
	call    *Call
	tool    string
	actions session.EventActions
	state   state
	word    *toolconfirmation.ToolConfirmation

	mu   sync.Mutex
	dead bool
	ask  *protocol.Ask // what the tool asked last
}

func newContext(ctx context.Context, c *Call, name string) *toolContext {
	tc := &toolContext{Context: ctx, call: c, tool: name}
	tc.state.snapshot, tc.state.actions = c.Envelope.State, &tc.actions
	if w := c.Envelope.Confirmation; w != nil {
		tc.word = &toolconfirmation.ToolConfirmation{Hint: w.Hint, Confirmed: w.Confirmed}
		if len(w.Payload) > 0 {
			tc.word.Payload, _ = decodeAny(w.Payload) // part of a message that was decoded
		}
	}
	return tc
}

func (c *toolContext) close() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
}

func (c *toolContext) UserContent() *genai.Content { return nil }
func (c *toolContext) InvocationID() string        { return "" }
func (c *toolContext) AgentName() string           { return c.call.Envelope.Agent }
func (c *toolContext) UserID() string              { return protocol.UserName(c.call.Envelope.User) }
func (c *toolContext) AppName() string             { return c.call.Envelope.App }
func (c *toolContext) SessionID() string {
	return protocol.SessionName(c.UserID(), c.call.Envelope.Session)
}
func (c *toolContext) Branch() string                       { return "" }
func (c *toolContext) FunctionCallID() string               { return c.call.Envelope.Call }
func (c *toolContext) Attempt() int                         { return c.call.Attempt }
func (c *toolContext) Actions() *session.EventActions       { return &c.actions }
func (c *toolContext) State() session.State                 { return &c.state }
func (c *toolContext) ReadonlyState() session.ReadonlyState { return &c.state }
func (c *toolContext) Artifacts() agent.Artifacts           { return noArtifacts{} }

func (c *toolContext) SearchMemory(context.Context, string) (*memory.SearchResponse, error) {
	return nil, notConnected("memory search")
}

func (c *toolContext) ToolConfirmation() *toolconfirmation.ToolConfirmation { return c.word }

func (c *toolContext) ResultHandle() string {
	e := &c.call.Envelope
	return protocol.Handle{App: e.App, Tool: c.tool, Session: e.Session, Call: e.Call, Round: e.Round + 1}.String()
}

// Keep implements tool.Keeper.
func (c *toolContext) Keep(data []byte, mediaType string) (protocol.Ref, error) {
	switch {
	case c.call.Keep == nil:
		return protocol.Ref{}, notConnected("the object store")
	case len(data) > tool.MaxKept:
		return protocol.Ref{}, protocol.Errorf(protocol.CodeTooLarge, "%d bytes are more than %d", len(data), tool.MaxKept)
	}
	return c.call.Keep(c, data, mediaType)
}

func (c *toolContext) Progress(percent float64, message string) {
	if c.call.Progress == nil {
		return
	}
	if !(percent > 0) { // NaN is unknown too
		percent = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return
	}
	c.call.Progress(protocol.Progress{
		Worker: c.call.Worker, Attempt: c.call.Attempt,
		Percent: math.Min(percent, 100), Message: strings.ToValidUTF8(cut(message, maxProgress), "\uFFFD"),
	})
}

// Piece tells the next piece of a streamed answer: see tool.Join. A long one is told in parts.
func (c *toolContext) Piece(text string) {
	if c.call.Progress == nil {
		return
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	c.mu.Lock()
	defer c.mu.Unlock()
	for text != "" && !c.dead {
		n := min(len(text), maxProgress)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		part := text[:n]
		text = text[n:]
		c.call.Progress(protocol.Progress{Worker: c.call.Worker, Attempt: c.call.Attempt, Message: part, Piece: true})
	}
}

// Asks tells that the call waits until people have answered another one, which asks them: call is its id.
func (c *toolContext) Asks(call, message string) {
	if c.call.Progress == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return
	}
	c.call.Progress(protocol.Progress{
		Worker: c.call.Worker, Attempt: c.call.Attempt, Message: strings.ToValidUTF8(cut(message, maxProgress), "\uFFFD"), Asks: call,
	})
}

// maxProgress is how much of a progress message is sent, in bytes.
const maxProgress = 1 << 10

func (c *toolContext) Logger() *slog.Logger {
	if c.call.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.call.Logger.With("tool", c.tool, "call", c.call.Envelope.Call, "session", c.call.Envelope.Session, "attempt", c.call.Attempt)
}

// wanted is what the tool wants of the session; nil when it wants nothing. Only for a tool that has returned.
func (c *toolContext) wanted() (*protocol.Actions, error) {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	a := c.actions
	if len(a.StateDelta) == 0 && !a.SkipSummarization && !a.Escalate && a.TransferToAgent == "" {
		return nil, nil
	}
	out := &protocol.Actions{SkipSummarization: a.SkipSummarization, Escalate: a.Escalate, TransferToAgent: a.TransferToAgent}
	for key, v := range a.StateDelta {
		b, err := Encode(v)
		if err != nil {
			return nil, fmt.Errorf("state key %q: %w", key, err)
		}
		if out.StateDelta == nil {
			out.StateDelta = make(map[string]json.RawMessage, len(a.StateDelta))
		}
		out.StateDelta[key] = b
	}
	return out, nil
}

// notConnected is the answer of what a worker cannot reach.
func notConnected(what string) error {
	return protocol.Errorf(protocol.CodeUnsupported, "%s: no such service is connected to this worker", what)
}

type noArtifacts struct{}

func (noArtifacts) Save(context.Context, string, *genai.Part) (*artifact.SaveResponse, error) {
	return nil, notConnected("artifacts")
}

func (noArtifacts) List(context.Context) (*artifact.ListResponse, error) {
	return nil, notConnected("artifacts")
}

func (noArtifacts) Load(context.Context, string) (*artifact.LoadResponse, error) {
	return nil, notConnected("artifacts")
}

func (noArtifacts) LoadVersion(context.Context, string, int) (*artifact.LoadResponse, error) {
	return nil, notConnected("artifacts")
}
