package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	restateserver "github.com/restatedev/sdk-go/server"
)

func restatePeer(synced bool) Peer {
	p := Peer{
		System: "Restate", Synced: synced,
		Durability: "write-ahead log synced (its default)",
		Notes:      "one node, defaults; a call is one ingress request of a service's handler, which Restate calls over HTTP/2",
		Open:       func(ctx context.Context, e *Env) (Call, func(), error) { return openRestate(ctx, e, synced) },
	}
	if !synced {
		p.Durability = "write-ahead log not synced (`rocksdb-disable-wal-fsync`)"
	}
	return p
}

// Echo is the service that Restate calls.
type Echo struct{}

// Say is its one handler.
func (Echo) Say(_ restate.Context, args echoArgs) (string, error) { return args.Text, nil }

func openRestate(ctx context.Context, e *Env, synced bool) (_ Call, _ func(), err error) {
	var undo undos
	defer func() { undo.onError(err) }()
	program, err := e.restateServer(ctx)
	if err != nil {
		return nil, nil, err
	}
	dir, err := e.dir("restate")
	if err != nil {
		return nil, nil, err
	}
	var ports [3]int
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return nil, nil, err
		}
	}
	node, admin, door := ports[0], ports[1], ports[2]
	cmd := exec.Command(program, "--base-dir", dir, "--no-logo") //nolint:gosec // a server of ours
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RESTATE_LISTEN_MODE=tcp", "RESTATE_BIND_IP=127.0.0.1", "RESTATE_ADVERTISED_HOST=127.0.0.1",
		"RESTATE_DISABLE_TELEMETRY=true", "RESTATE_LOG_FILTER=warn",
		"RESTATE_BIND_PORT="+strconv.Itoa(node), "RESTATE_ADMIN__BIND_PORT="+strconv.Itoa(admin), "RESTATE_INGRESS__BIND_PORT="+strconv.Itoa(door))
	if !synced {
		cmd.Env = append(cmd.Env, "RESTATE_LOG_SERVER__ROCKSDB_DISABLE_WAL_FSYNC=true", "RESTATE_WORKER__STORAGE__ROCKSDB_DISABLE_WAL_FSYNC=true")
	}
	server, err := e.start(ctx, local(door), cmd)
	if err != nil {
		return nil, nil, err
	}
	undo.add(server.stop)

	quiet := slog.NewTextHandler(io.Discard, nil)
	handler, err := restateserver.NewRestate().WithLogger(quiet, true).Bind(restate.Reflect(Echo{})).Handler()
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	worker := &http.Server{Handler: handler, Protocols: &protocols, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = worker.Serve(listener) }() // ends with Close
	undo.add(func() { _ = worker.Close() })
	if err := register(ctx, "http://"+local(admin), "http://"+listener.Addr().String()); err != nil {
		return nil, nil, fmt.Errorf("register the service: %w", err)
	}

	transport := &http.Transport{MaxIdleConnsPerHost: slots}
	undo.add(transport.CloseIdleConnections)
	client := ingress.NewClient("http://"+local(door), ingress.WithHttpClient(&http.Client{Transport: transport}))
	say := ingress.Service[echoArgs, string](client, "Echo", "Say")
	call := func(ctx context.Context, _ int, text string) (string, error) { return say.Request(ctx, echoArgs{text}) }
	for deadline := time.Now().Add(startLimit); ; time.Sleep(50 * time.Millisecond) { // its partitions elect leaders first
		if _, err := call(ctx, 0, "ready?"); err == nil {
			return call, undo.all, nil
		} else if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, nil, fmt.Errorf("it answers no call: %w", err)
		}
	}
}

// register tells Restate where the service is.
func register(ctx context.Context, admin, service string) error {
	body, err := json.Marshal(map[string]any{"uri": service})
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(startLimit); ; time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, admin+"/deployments", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
			_ = resp.Body.Close()
			if resp.StatusCode/100 == 2 {
				return nil
			}
			err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(said)))
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
	}
}
