package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	riverqueue "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/toolfabric/toolfabric/protocol"
)

func river(commit string) Peer {
	p := Peer{
		System: "River", Synced: commit == "on",
		Durability: "write-ahead log synced at each commit (`synchronous_commit on`, `fsync on`)",
		Notes:      "it has no waiting for a result: its worker completes the job with its output and notifies in one transaction (our addition); fetch cooldown 1 ms, its default is 100 ms",
		Open:       func(ctx context.Context, e *Env) (Call, func(), error) { return openRiver(ctx, e, commit) },
	}
	if !p.Synced {
		p.Durability = "write-ahead log synced within 0.6 s (`synchronous_commit off`)"
	}
	return p
}

// riverArgs are a job's arguments. River hands out ids only at insertion, which is too late to listen for a fast result.
type riverArgs struct {
	echoArgs
	Key string `json:"key"`
}

func (riverArgs) Kind() string { return "echo" }

type riverWorker struct {
	riverqueue.WorkerDefaults[riverArgs]
	pool *pgxpool.Pool
}

func (w *riverWorker) Work(ctx context.Context, job *riverqueue.Job[riverArgs]) error {
	data, err := json.Marshal(reply{ID: job.Args.Key, Result: job.Args.Text})
	if err != nil {
		return err
	}
	if err := riverqueue.RecordOutput(ctx, job.Args.Text); err != nil {
		return err
	}
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // without effect after the commit
	if _, err := riverqueue.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "select pg_notify('results', $1)", string(data)); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func openRiver(ctx context.Context, e *Env, commit string) (_ Call, _ func(), err error) {
	var undo undos
	defer func() { undo.onError(err) }()
	server, url, err := startPostgres(ctx, e, commit)
	if err != nil {
		return nil, nil, err
	}
	undo.add(server.stop)
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = 32
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	undo.add(pool.Close)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return nil, nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, nil, fmt.Errorf("make River's tables: %w", err)
	}

	var got replies
	hear, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	if _, err := hear.Exec(ctx, "listen results"); err != nil {
		return nil, nil, err
	}
	listening, deaf := context.WithCancel(context.WithoutCancel(ctx))
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			n, err := hear.WaitForNotification(listening)
			if err != nil {
				return
			}
			got.read(n.Payload)
		}
	})
	undo.add(func() { deaf(); reading.Wait(); _ = hear.Close(context.Background()) })

	workers := riverqueue.NewWorkers()
	riverqueue.AddWorker(workers, &riverWorker{pool: pool})
	client, err := riverqueue.NewClient(riverpgxv5.New(pool), &riverqueue.Config{
		Queues:  map[string]riverqueue.QueueConfig{riverqueue.QueueDefault: {MaxWorkers: slots}},
		Workers: workers, FetchCooldown: riverqueue.FetchCooldownMin,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, nil, err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, nil, err
	}
	undo.add(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = client.StopAndCancel(ctx)
	})
	return func(ctx context.Context, _ int, text string) (string, error) {
		key := protocol.NewID()
		c := got.expect(key)
		if _, err := client.Insert(ctx, riverArgs{echoArgs{text}, key}, nil); err != nil {
			return "", err
		}
		return wait(ctx, c)
	}, undo.all, nil
}

// startPostgres makes a cluster of its own in a folder of its own and runs it.
func startPostgres(ctx context.Context, e *Env, commit string) (*process, string, error) {
	programs, err := postgres()
	if err != nil {
		return nil, "", err
	}
	dir, err := e.dir("postgres")
	if err != nil {
		return nil, "", err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "--no-sync") //nolint:gosec // a server of ours
	if err := asNobody(initdb, dir); err != nil {
		return nil, "", err
	}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("initdb: %w: %.300s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(filepath.Join(programs, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-k", dir, //nolint:gosec // a server of ours
		"-c", "listen_addresses=127.0.0.1", "-c", "synchronous_commit="+commit, "-c", "shared_buffers=256MB")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := asNobody(cmd, dir); err != nil {
		return nil, "", err
	}
	server, err := e.start(ctx, local(port), cmd)
	if err != nil {
		return nil, "", err
	}
	url := "postgres://bench@" + local(port) + "/postgres"
	for deadline := time.Now().Add(startLimit); ; { // it listens before it takes queries
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			_ = conn.Close(ctx)
			return server, url, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			server.stop()
			return nil, "", fmt.Errorf("PostgreSQL takes no queries: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
