package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/toolfabric/toolfabric/protocol"
)

const slots = 256 // of each worker: calls wait for the server and not for a slot

func asynqOn(fsync string) Peer {
	p := Peer{
		System: "Asynq", Synced: fsync == "always",
		Durability: "append-only file synced every second (`appendfsync everysec`)",
		Notes:      "it has no waiting for a result: its worker also publishes the result, which is kept nowhere else, by Redis pub/sub (our addition); check interval 1 ms, its default of 1 s makes a call take 1 s",
		Open:       func(ctx context.Context, e *Env) (Call, func(), error) { return openAsynq(ctx, e, fsync) },
	}
	if p.Synced {
		p.Durability = "append-only file synced before each reply (`appendfsync always`)"
	}
	return p
}

// replies hands results to those who wait for them, by id.
type replies struct{ waiting sync.Map }

func (r *replies) expect(id string) chan string {
	c := make(chan string, 1)
	r.waiting.Store(id, c)
	return c
}

func (r *replies) deliver(id, result string) {
	if c, ok := r.waiting.LoadAndDelete(id); ok {
		c.(chan string) <- result
	}
}

// reply is a result on its way to the caller.
type reply struct {
	ID     string `json:"id"`
	Result string `json:"result"`
}

func (r *replies) read(data string) {
	var m reply
	if json.Unmarshal([]byte(data), &m) == nil {
		r.deliver(m.ID, m.Result)
	}
}

func wait(ctx context.Context, c chan string) (string, error) {
	select {
	case result := <-c:
		return result, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func openAsynq(ctx context.Context, e *Env, fsync string) (_ Call, _ func(), err error) {
	var undo undos
	defer func() { undo.onError(err) }()
	program, environ, err := e.redisServer(ctx)
	if err != nil {
		return nil, nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	dir, err := e.dir("redis")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, //nolint:gosec // a server of ours
		"--save", "", "--appendonly", "yes", "--appendfsync", fsync)
	cmd.Env = environ
	server, err := e.start(ctx, local(port), cmd)
	if err != nil {
		return nil, nil, err
	}
	undo.add(server.stop)

	side := redis.NewClient(&redis.Options{Addr: local(port)})
	undo.add(func() { _ = side.Close() })
	sub := side.Subscribe(ctx, "results")
	if _, err := sub.Receive(ctx); err != nil {
		return nil, nil, fmt.Errorf("subscribe: %w", err)
	}
	var got replies
	var reading sync.WaitGroup
	results := sub.Channel(redis.WithChannelSize(1000))
	reading.Go(func() {
		for m := range results {
			got.read(m.Payload)
		}
	})
	undo.add(func() { _ = sub.Close(); reading.Wait() })

	opt := asynq.RedisClientOpt{Addr: local(port)}
	worker := asynq.NewServer(opt, asynq.Config{Concurrency: slots, TaskCheckInterval: time.Millisecond, LogLevel: asynq.FatalLevel})
	mux := asynq.NewServeMux()
	mux.HandleFunc("echo", func(ctx context.Context, t *asynq.Task) error {
		var args echoArgs
		if err := json.Unmarshal(t.Payload(), &args); err != nil {
			return err
		}
		data, err := json.Marshal(reply{ID: t.ResultWriter().TaskID(), Result: args.Text})
		if err != nil {
			return err
		}
		return side.Publish(ctx, "results", data).Err()
	})
	if err := worker.Start(mux); err != nil {
		return nil, nil, err
	}
	undo.add(worker.Shutdown)
	client := asynq.NewClient(opt)
	undo.add(func() { _ = client.Close() })
	return func(ctx context.Context, _ int, text string) (string, error) {
		args, err := json.Marshal(echoArgs{text})
		if err != nil {
			return "", err
		}
		id := protocol.NewID()
		c := got.expect(id)
		if _, err := client.EnqueueContext(ctx, asynq.NewTask("echo", args), asynq.TaskID(id)); err != nil {
			return "", err
		}
		return wait(ctx, c)
	}, undo.all, nil
}

// undos are what ends what was begun, run newest first.
type undos struct{ list []func() }

func (u *undos) add(f func()) { u.list = append(u.list, f) }

func (u *undos) all() {
	for i := len(u.list) - 1; i >= 0; i-- {
		u.list[i]()
	}
	u.list = nil
}

func (u *undos) onError(err error) {
	if err != nil {
		u.all()
	}
}
