package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// run is one Run.
type run struct {
	r      *Runner
	client *client.Client
	user   string // as the program says
	name   string // of the session, as the program says
	app    string
	id     string // of the session
	token  string // of the user
	said   said
	delta  map[string]any
	pieces *pieces // nil without streaming

	replay *client.Replay
	sent   client.Sent
	yield  func(*session.Event, error) bool
}

// cancelTimeout is how long the end of a run's context may take to be told to the fabric.
const cancelTimeout = 5 * time.Second

func (r *Runner) begin(user, name string, msg *genai.Content, cfg agent.RunConfig, o options) (*run, error) {
	switch cfg.StreamingMode {
	case "", agent.StreamingModeNone, agent.StreamingModeSSE:
	default:
		return nil, protocol.Errorf(protocol.CodeUnsupported, "streaming mode %q: it is %s or %s", cfg.StreamingMode, agent.StreamingModeNone, agent.StreamingModeSSE)
	}
	if cfg.SaveInputBlobsAsArtifacts {
		return nil, protocol.Errorf(protocol.CodeUnsupported, "SaveInputBlobsAsArtifacts: artifacts are not part of this version; send the blob in the message")
	}
	one := &run{r: r, user: user, name: name, app: r.cfg.Agent.Name(), delta: o.delta}
	var err error
	if one.said, err = listen(msg); err != nil {
		return nil, err
	}
	if one.token, err = protocol.ClientID(user); err != nil {
		return nil, err
	}
	if one.id, err = protocol.SessionID(user, name); err != nil {
		return nil, err
	}
	if one.client, err = r.client(one.token); err != nil {
		return nil, err
	}
	if cfg.StreamingMode == agent.StreamingModeSSE {
		one.pieces = &pieces{}
	}
	return one, nil
}

// do sends the message and yields what follows.
func (u *run) do(ctx context.Context, yield func(*session.Event, error) bool) {
	u.yield = yield
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(u.r.fabric.gone, func() { stop(context.Cause(u.r.fabric.gone)) })()
	for up, err := range u.client.Attend(watching, u.app, u.id, u.said.answers(), u.send) {
		switch {
		case errors.Is(err, errEnough):
			return
		case ctx.Err() != nil:
			u.cancel(ctx)
			yield(nil, fmt.Errorf("the run of session %s: %w", u.name, ctx.Err()))
			return
		case watching.Err() != nil:
			yield(nil, context.Cause(watching))
			return
		case protocol.CodeOf(err) == protocol.CodeUnreachable && !u.sent.Empty():
			continue // the run goes on without us; Attend tries again
		case err != nil:
			yield(nil, err)
			return
		}
		if !u.show(up) {
			return
		}
	}
}

// errEnough says that the program has heard enough.
var errEnough = errors.New("the reader stopped")

// cancel tells the fabric that nobody wants the run any more.
func (u *run) cancel(ctx context.Context) {
	if u.sent.Empty() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	if err := u.client.Cancel(ctx, u.app, u.id, ""); err != nil {
		u.r.fabric.log.Warn("a run could not be cancelled", "session", u.id, "error", err)
	}
}

// ErrQueued says that a message is stored and is taken up when the calls that its session waits for have ended. The error
// that Run yields names them.
var ErrQueued = errors.New("the message is queued")

type queued struct{ waiting *client.Waiting }

func (q queued) Error() string        { return q.waiting.String() }
func (q queued) Is(target error) bool { return target == ErrQueued }

// textOf is what an event says, without thoughts.
func textOf(ev *session.Event) string {
	var b strings.Builder
	for _, p := range ev.Content.Parts {
		if p != nil && !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// show yields what an update brings. It reports whether to go on.
func (u *run) show(up client.Update) bool {
	switch {
	case up.Token != nil && u.pieces != nil:
		return u.piece(u.pieces.token(up.Token, u.replay.Turns()))
	case up.Entry != nil:
		return u.entry(up.Entry)
	case up.Waiting != nil:
		if up.Waiting.Queued {
			u.yield(nil, queued{up.Waiting})
		}
		return false
	case up.Outcome != nil:
		if err := up.Outcome.Err(); err != nil {
			u.yield(nil, err)
		}
		return false
	}
	return true
}

func (u *run) entry(e *client.Entry) bool {
	for _, ev := range u.replay.Take() {
		if u.pieces != nil && e.Event.Turn != nil && ev.Content != nil && ev.Content.Role == genai.RoleModel && !u.piece(u.pieces.whole(textOf(ev))) {
			return false
		}
		if ev.Author == "user" || ev.ErrorCode != "" && ev.Content == nil { // the program's own words; the error comes with the end
			continue
		}
		if !u.yield(plain(ev), nil) {
			return false
		}
	}
	return true
}

// piece yields a text that is on its way; an empty one is none.
func (u *run) piece(text string) bool {
	if text == "" {
		return true
	}
	ev := &session.Event{ID: protocol.NewID(), Author: u.app, Timestamp: time.Now()}
	ev.Content, ev.Partial = genai.NewContentFromText(text, genai.RoleModel), true
	return u.yield(ev, nil)
}
