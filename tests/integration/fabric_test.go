// Package integration runs coordinators and workers together on a real nats-server.
package integration

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// fabric is a server with as many coordinators and workers on it as a test wants.
type fabric struct {
	t      *testing.T
	server *natstest.Server
	client *client.Client
	conn   *natswire.Conn
	other  *natswire.Conn // for questions inside the callbacks of conn
	lease  time.Duration  // of calls: 0 is the usual one, which no pause of a busy machine outlasts
	clock  natswire.Clock // of coordinators started from now on; nil is right
	policy *policy.Policy // of coordinators started from now on

	background sync.WaitGroup // waited for before the connections close
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	s := natstest.Start(t)
	f := &fabric{t: t, server: s, conn: s.Connect(t, ""), other: s.Dial(t, natswire.Config{})}
	c, err := client.New(client.Config{Bus: f.conn, Names: f.conn.Names(), Client: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	f.client = c
	t.Cleanup(f.background.Wait)
	return f
}

func logger(t *testing.T) *slog.Logger {
	if os.Getenv("TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("test", t.Name())
}

// member is a running coordinator or worker.
type member struct {
	id   string
	conn *natswire.Conn
	stop func() // drains and waits
}

// die takes the member's connection away without a word, as a crash does.
func (m *member) die() { m.conn.Close() }

// coordinate starts a coordinator on a connection of its own.
func (f *fabric) coordinate(agents ...agent.Agent) *member {
	f.t.Helper()
	conn := f.server.Dial(f.t, natswire.Config{})
	return f.coordinateOn(conn, conn, agents...)
}

// coordinateOn starts a coordinator that sees conn through bus, and waits until it takes inputs.
func (f *fabric) coordinateOn(conn *natswire.Conn, bus natswire.Bus, agents ...agent.Agent) *member {
	f.t.Helper()
	ready := make(chan struct{}, 1)
	c, err := coordinator.New(coordinator.Config{Bus: bus, Names: conn.Names(), Agents: agents, Logger: logger(f.t), CallLease: f.lease, Clock: f.clock, Policy: f.policy, Grace: 5 * time.Second,
		Ready: func() { ready <- struct{}{} }})
	if err != nil {
		f.t.Fatal(err)
	}
	m := f.run(conn, c.Run)
	m.id = c.ID()
	receive(f.t, "coordinator that is up", ready)
	return m
}

// work starts a worker on a connection of its own and waits until it serves all of its tools.
func (f *fabric) work(tools ...tool.Tool) *member {
	f.t.Helper()
	conn := f.server.Dial(f.t, natswire.Config{})
	return f.workOn(conn, conn, worker.Events{}, tools...)
}

// workOn starts a worker that sees conn through bus.
func (f *fabric) workOn(conn *natswire.Conn, bus natswire.Bus, on worker.Events, tools ...tool.Tool) *member {
	f.t.Helper()
	serving := make(chan string, 100*len(tools))
	on = worker.Join(on, worker.Events{Serving: func(name string) {
		select {
		case serving <- name:
		default:
		}
	}})
	w, err := worker.New(worker.Config{Bus: bus, Names: conn.Names(), Tools: tools, Slots: 64, Grace: time.Second, Logger: logger(f.t), Listener: on})
	if err != nil {
		f.t.Fatal(err)
	}
	m := f.run(conn, w.Run)
	m.id = w.ID()
	for served := map[string]bool{}; len(served) < len(tools); {
		served[receive(f.t, "pool being served", serving)] = true
	}
	return m
}

func (f *fabric) run(conn *natswire.Conn, run func(context.Context) error) *member {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			f.t.Errorf("a member ended: %v", err)
		}
	})
	m := &member{conn: conn, stop: func() { cancel(); done.Wait() }}
	f.t.Cleanup(m.stop)
	return m
}

func script(t *testing.T, text string) model.LLM {
	t.Helper()
	s, err := scripted.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New("scripted", s)
}

func newAgent(t *testing.T, name string, llm model.LLM, tools ...string) agent.Agent {
	t.Helper()
	cfg := llmagent.Config{Name: name, Model: llm, Instruction: "Use the tools."}
	for _, tl := range tools {
		cfg.Tools = append(cfg.Tools, tool.Pool(tl))
	}
	a, err := llmagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ask sends a message once the app is served, and waits for the end of its run.
func (f *fabric) ask(app, session, text string) client.Outcome {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	return f.wait(f.send(ctx, app, session, text))
}

// wait returns how the run of an input ended.
func (f *fabric) wait(r client.Receipt) client.Outcome {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	out, err := f.client.WaitEnd(ctx, r.App, r.Session, r.InputID)
	if err != nil {
		f.t.Fatalf("wait: %v", err)
	}
	return out
}

// poll is the pause between two looks at what nobody tells of.
const poll = 20 * time.Millisecond

func (f *fabric) send(ctx context.Context, app, session, text string, opts ...client.SendOption) client.Receipt {
	f.t.Helper()
	for {
		r, err := f.client.Send(ctx, app, session, client.Text(text), opts...)
		if err == nil {
			return r
		}
		if protocol.CodeOf(err) != protocol.CodeUnknownApp {
			f.t.Fatalf("send: %v", err)
		}
		if err := natswire.Sleep(ctx, natswire.SystemClock{}, poll); err != nil {
			f.t.Fatalf("no coordinator came to serve %s: %v", app, err)
		}
	}
}

// call makes one call, once the tool is known.
func (f *fabric) call(name, args string) (protocol.Result, error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	return f.client.Call(ctx, name, json.RawMessage(args))
}

func contains(t *testing.T, what, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s is %q, want it to hold %q", what, text, want)
	}
}
