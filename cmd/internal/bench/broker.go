package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
)

// Where the broker of a measurement runs.
const (
	PlaceEmbedded = "embedded" // in this process, reached without a socket
	PlaceSeparate = "separate" // a process of its own, reached over loopback TCP
)

const (
	startLimit  = 30 * time.Second // for a broker to accept connections
	cpuSubject  = "bench.cpu"      // a separate broker answers with its CPU time in nanoseconds
	heapSubject = "bench.heap"     // and with its live heap in bytes, after collecting the rest
)

// Broker is a running NATS server with JetStream on files.
type Broker struct {
	Place  string         // PlaceEmbedded or PlaceSeparate
	URL    string         // on loopback; also the embedded server listens
	Server *server.Server // nil when the server is another process

	process *exec.Cmd
	stdin   io.Closer
	control *nats.Conn // asks a separate server for its CPU time
}

// ServeConfig is the broker's configuration.
type ServeConfig struct {
	Dir        string // where the streams are kept; must be empty or absent
	SyncAlways bool   // every stored message is synced to disk before its ack; false syncs every 100 ms
}

// StartEmbedded runs a broker in this process.
func StartEmbedded(cfg ServeConfig) (*Broker, error) {
	srv, err := server.NewServer(&server.Options{
		ServerName: "bench",
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   cfg.Dir,
		NoLog:      true,
		NoSigs:     true,
		// Both fields: SyncAlways alone would leave the interval for indexes at two minutes.
		SyncInterval: embed.SyncInterval,
		SyncAlways:   cfg.SyncAlways,
	})
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(startLimit) {
		srv.Shutdown()
		return nil, fmt.Errorf("embedded broker: not ready within %s", startLimit)
	}
	return &Broker{Place: PlaceEmbedded, URL: srv.ClientURL(), Server: srv}, nil
}

// greeting is the first line a separate broker writes.
type greeting struct {
	URL string `json:"url"`
}

// Serve runs a broker until ctx ends or stdin does, for the process that StartSeparate starts. When it accepts
// connections, it writes its address to stdout. That it ends with stdin leaves no orphan behind when the measuring process is killed.
func Serve(ctx context.Context, cfg ServeConfig, stdin io.Reader, stdout io.Writer) error {
	b, err := StartEmbedded(cfg)
	if err != nil {
		return err
	}
	defer b.Close()
	nc, err := b.Connect("bench-cpu")
	if err != nil {
		return err
	}
	defer nc.Close()
	_, err = nc.Subscribe(cpuSubject, func(m *nats.Msg) {
		_ = m.Respond([]byte(strconv.FormatInt(int64(ownCPU()), 10))) // the asker has a deadline
	})
	if err != nil {
		return err
	}
	_, err = nc.Subscribe(heapSubject, func(m *nats.Msg) {
		_ = m.Respond([]byte(strconv.FormatInt(ownHeap(), 10)))
	})
	if err != nil {
		return err
	}
	if err := nc.Flush(); err != nil {
		return err
	}
	if err := json.NewEncoder(stdout).Encode(greeting{URL: b.URL}); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() { // ends with the process when stdin stays open
		defer close(gone)
		_, _ = io.Copy(io.Discard, stdin)
	}()
	select {
	case <-ctx.Done():
	case <-gone:
	}
	return nil
}

// StartSeparate starts cmd, which must call Serve with its own stdin and stdout, and waits until it accepts connections.
func StartSeparate(ctx context.Context, cmd *exec.Cmd) (*Broker, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("separate broker: %w", err)
	}
	b := &Broker{Place: PlaceSeparate, process: cmd, stdin: stdin}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // ends the read below
	var hello greeting
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	stop()
	if err == nil {
		err = json.Unmarshal(line, &hello)
	}
	if err == nil {
		b.URL = hello.URL
		b.control, err = b.Connect("bench-control")
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("separate broker %q: %w", cmd.Args, errors.Join(err, context.Cause(ctx)))
	}
	return b, nil
}

// Connect opens a connection: in process when the broker is embedded, TCP otherwise. The caller closes it.
func (b *Broker) Connect(name string) (*nats.Conn, error) {
	opts := []nats.Option{nats.Name(name), nats.NoReconnect(), nats.Timeout(startLimit)}
	if b.Server != nil {
		opts = append(opts, nats.InProcessServer(b.Server))
	}
	nc, err := nats.Connect(b.URL, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to the %s broker: %w", b.Place, err)
	}
	return nc, nil
}

// CPU is the CPU time that this process and the broker have spent so far.
func (b *Broker) CPU(ctx context.Context) (time.Duration, error) {
	if b.Server != nil {
		return ownCPU(), nil
	}
	theirs, err := b.ask(ctx, cpuSubject)
	return ownCPU() + time.Duration(theirs), err
}

// Heap is the live heap, in bytes, of a broker that is a process of its own.
func (b *Broker) Heap(ctx context.Context) (int64, error) { return b.ask(ctx, heapSubject) }

func (b *Broker) ask(ctx context.Context, subject string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	reply, err := b.control.RequestWithContext(ctx, subject, nil)
	if err != nil {
		return 0, fmt.Errorf("ask the broker for its %s: %w", subject, err)
	}
	return strconv.ParseInt(string(reply.Data), 10, 64)
}

// ownHeap is the live heap of this process in bytes.
func ownHeap() int64 {
	runtime.GC()
	runtime.GC() // what the first one only made collectable: pools, finalisers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Close stops the broker and waits for its end. Its files stay.
func (b *Broker) Close() {
	if b.control != nil {
		b.control.Close()
	}
	if b.Server != nil {
		b.Server.Shutdown()
		b.Server.WaitForShutdown()
	}
	if b.process != nil {
		_ = b.stdin.Close() // asks it to stop
		kill := time.AfterFunc(startLimit, func() { _ = b.process.Process.Kill() })
		_ = b.process.Wait() // however it ended, it is gone
		kill.Stop()
	}
}
