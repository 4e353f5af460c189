package runner

import (
	"context"
	"iter"
	"sync"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Runner runs an agent in sessions. It may be used concurrently, also for one session.
type Runner struct {
	cfg      Config
	sessions *session.Sessions
	fabric   *fabric
	app      *app
	close    func()
}

// New checks cfg, opens the fabric and begins to serve the agent; tools are served by the time the first Run goes on. The
// errors are sentences; those of a server that cannot be reached or used are *protocol.Error as natswire.Connect documents.
func New(cfg Config) (*Runner, error) {
	sessions, err := cfg.check()
	if err != nil {
		return nil, err
	}
	tools, err := collect(cfg.Agent)
	if err != nil {
		return nil, err
	}
	tools.plugins = cfg.PluginConfig.Plugins
	f, err := cfg.Fabric.use(sessions)
	if err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, sessions: sessions, fabric: f}
	if r.app, err = f.serve(cfg.Agent, tools); err != nil {
		f.release(false)
		return nil, err
	}
	r.close = sync.OnceFunc(func() {
		r.app.release()
		r.fabric.release(false)
	})
	if err := sessions.Attach(cfg.AppName, log{f, cfg.Agent.Name()}); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// Close ends what the runner serves, and the fabric with the last runner on it: sessions that are in memory only are gone
// then. A Run that goes on ends with an error. Repeating Close is no error. A program that ends need not call it.
func (r *Runner) Close() error {
	r.close()
	return nil
}

// RunOption changes one run.
type RunOption func(*options)

type options struct{ delta map[string]any }

// WithStateDelta sets keys of the session's state before the run. Values are JSON-encodable; nil removes a key.
func WithStateDelta(delta map[string]any) RunOption {
	return func(o *options) { o.delta = delta }
}

// Run sends msg to a session and yields what happens as ADK's events, in order, until the run has ended or waits for
// somebody outside. Messages of users are not among them. With StreamingModeSSE the text of each answer comes in pieces
// first, as events with Partial set whose texts joined are the answer's.
//
// A call that people are asked about yields an event with an adk_request_confirmation call; msg answers it with a
// FunctionResponse of its id. A FunctionResponse of a long-running call's id is that call's result, or an interim one with
// WillContinue set. Text beside them is a message.
//
// An error ends the sequence unless it is about one of several answers in msg. It is session.ErrNotFound; ErrQueued when msg
// has to wait until the calls before it have ended; what the run failed with; or one of codes already_decided,
// already_answered, unknown_confirmation, not_found, bad_message and session_closed, which change nothing. When ctx ends
// the run is cancelled, and the error is that of ctx.
func (r *Runner) Run(ctx context.Context, userID, sessionID string, msg *genai.Content, cfg agent.RunConfig, opts ...RunOption) iter.Seq2[*session.Event, error] {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return func(yield func(*session.Event, error) bool) {
		run, err := r.begin(userID, sessionID, msg, cfg, o)
		if err == nil {
			err = r.app.await(ctx)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		run.do(ctx, yield)
	}
}

func (r *Runner) client(user string) (*client.Client, error) {
	return client.New(client.Config{Bus: r.fabric.conn, Names: r.fabric.conn.Names(), Client: user})
}
