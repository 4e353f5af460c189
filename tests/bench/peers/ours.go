package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

const appName, toolName = "bench", "echo"

// way is how a call is made on a fabric.
type way func(ctx context.Context, f *fabric) (Call, error)

// oursCall makes each call as toolfabric call does.
func oursCall(synced bool) Peer {
	return ours(synced, "Toolfabric, `toolfabric call`", "each call is a session of its own with a log of its own", openCalls)
}

// oursSession makes each call as a model's run does.
func oursSession(synced bool) Peer {
	return ours(synced, "Toolfabric, call in a session", "from the model's answer that asks for the call until the model is asked again", openSessions)
}

func ours(synced bool, system, notes string, open way) Peer {
	p := Peer{
		System: system, Synced: synced, Notes: notes,
		Durability: "files synced every 100 ms (the default)",
		Open:       func(ctx context.Context, e *Env) (Call, func(), error) { return openFabric(ctx, e, synced, open) },
	}
	if synced {
		p.Durability = "files synced before each ack (`--sync always`)"
	}
	return p
}

// fabric is a coordinator, a worker and a client, each with a connection of its own, on a server of its own.
type fabric struct {
	client *client.Client
	model  *puppet
}

func openFabric(ctx context.Context, e *Env, synced bool, open way) (_ Call, _ func(), err error) {
	var undo undos
	defer func() { undo.onError(err) }()
	server, url, err := startNATS(ctx, e, synced)
	if err != nil {
		return nil, nil, err
	}
	undo.add(server.stop)
	var conns [3]*natswire.Conn
	for i := range conns {
		if conns[i], err = natswire.Connect(ctx, natswire.Config{URL: url}); err != nil {
			return nil, nil, err
		}
		undo.add(conns[i].Close)
	}
	if err := natswire.Provision(ctx, conns[0], natswire.ProvisionConfig{}); err != nil {
		return nil, nil, err
	}
	names := conns[0].Names()
	f := &fabric{model: newPuppet()}
	if f.client, err = client.New(client.Config{Bus: conns[0], Names: names, Client: "bench"}); err != nil {
		return nil, nil, err
	}
	helper, err := llmagent.New(llmagent.Config{
		Name: appName, Model: f.model, Instruction: "Use the tool.", Tools: []tool.Tool{tool.Pool(toolName)},
		Limits: llmagent.Limits{ModelCalls: 10 * turnsPerSession},
	})
	if err != nil {
		return nil, nil, err
	}
	up := make(chan struct{}, 2)
	c, err := coordinator.New(coordinator.Config{
		Bus: conns[1], Names: names, Agents: []agent.Agent{helper}, Ready: func() { up <- struct{}{} },
	})
	if err != nil {
		return nil, nil, err
	}
	echo, err := functiontool.New(functiontool.Config{Name: toolName, Description: "Answers", Effect: tool.Idempotent},
		func(_ tool.Context, args echoArgs) (string, error) { return args.Text, nil })
	if err != nil {
		return nil, nil, err
	}
	var once sync.Once
	w, err := worker.New(worker.Config{
		Bus: conns[2], Names: names, Tools: []tool.Tool{echo}, Slots: slots,
		Listener: worker.Events{Serving: func(string) { once.Do(func() { up <- struct{}{} }) }},
	})
	if err != nil {
		return nil, nil, err
	}
	actors, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	failed := make(chan error, 2)
	for _, actor := range []func(context.Context) error{c.Run, w.Run} {
		running.Go(func() { failed <- actor(actors) })
	}
	undo.add(func() { stop(); running.Wait() })
	for range cap(up) {
		select {
		case <-up:
		case err := <-failed:
			return nil, nil, fmt.Errorf("an actor ended: %w", err)
		case <-time.After(startLimit):
			return nil, nil, errors.New("the fabric does not serve")
		}
	}
	call, err := open(ctx, f)
	return call, undo.all, err
}

// openCalls makes each call as toolfabric call does.
func openCalls(_ context.Context, f *fabric) (Call, error) {
	return func(ctx context.Context, _ int, text string) (string, error) {
		args, err := json.Marshal(echoArgs{text})
		if err != nil {
			return "", err
		}
		r, err := f.client.Call(ctx, toolName, args)
		if err != nil {
			return "", err
		}
		var v struct {
			Result string `json:"result"`
		}
		return v.Result, json.Unmarshal(r.Value, &v)
	}, nil
}

// openSessions makes each call as a model's session does: from the model's answer that asks for it, over the record of the
// turn, the worker and its stored result, until the model is asked again.
func openSessions(_ context.Context, f *fabric) (Call, error) {
	talks := make([]*talk, slots)
	return func(ctx context.Context, slot int, text string) (string, error) {
		if t := talks[slot]; t == nil || t.turns == turnsPerSession {
			if t != nil {
				t.answer <- lastWord()
			}
			talks[slot] = f.model.begin()
			if _, err := f.client.Send(ctx, appName, "", client.Text(talks[slot].key)); err != nil {
				return "", err
			}
			if _, err := talks[slot].heard(ctx); err != nil {
				return "", err
			}
		}
		t := talks[slot]
		t.turns++
		t.answer <- callOf(text)
		c, err := t.heard(ctx)
		if err != nil {
			return "", err
		}
		r := c.Parts[0].FunctionResponse
		if r == nil {
			return "", errors.New("the model was asked without the tool's result")
		}
		result, _ := r.Response["result"].(string)
		return result, nil
	}, nil
}

// startNATS runs the server that toolfabric has inside, as a process of its own: this program, told to be one.
func startNATS(ctx context.Context, e *Env, synced bool) (*process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	dir, err := e.dir("nats")
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(self, serveNATS, dir, local(port), strconv.FormatBool(synced)) //nolint:gosec // ourselves
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	_ = stdin // held open by this process: the server ends when it does
	server, err := e.start(ctx, local(port), cmd)
	return server, "nats://" + local(port), err
}

const serveNATS = "serve-nats"

// beNATS is the process that startNATS starts. It ends with ctx, or with whoever started it.
func beNATS(ctx context.Context, args []string, stdin io.Reader) error {
	if len(args) != 3 {
		return protocol.Errorf(protocol.CodeUsage, "%s DIR HOST:PORT SYNCED", serveNATS)
	}
	s, err := embed.Start(embed.Config{Dir: args[0], Listen: args[1], SyncAlways: args[2] == "true"})
	if err != nil {
		return err
	}
	defer s.Shutdown()
	gone := make(chan struct{})
	go func() { defer close(gone); _, _ = io.Copy(io.Discard, stdin) }() // ends with the process when stdin stays open
	select {
	case <-ctx.Done():
	case <-gone:
	}
	return nil
}
