package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Fabric says on what a runner runs. At most one of NATS, Context and Data is set; with none the environment decides:
// TOOLFABRIC_NATS, TOOLFABRIC_CONTEXT or TOOLFABRIC_DATA, and beside them TOOLFABRIC_CREDS and TOOLFABRIC_NAMESPACE. With
// none of those it is memory.
type Fabric struct {
	NATS      string // server addresses, separated by commas
	Creds     string // credentials file
	Context   string // NATS context
	Namespace string // first token of all subjects; empty is "tf"
	// Data is the directory of a server in this process. Where another process has it, toolfabric up or another program, that
	// one's server is used. The server listens on loopback, for the commands of toolfabric.
	Data string
	// Logger hears of connections, sessions and calls; nil tells nobody.
	Logger *slog.Logger
}

// openTimeout bounds how long New waits for a server.
const openTimeout = time.Minute

// target names a fabric. Each session service has a memory of its own.
type target struct {
	nats, creds, context, namespace, data string
	memory                                weak.Pointer[session.Sessions]
}

func (f Fabric) target(sessions *session.Sessions) target {
	t := target{nats: f.NATS, context: f.Context, data: f.Data}
	if t == (target{}) {
		t = target{nats: os.Getenv("TOOLFABRIC_NATS"), context: os.Getenv("TOOLFABRIC_CONTEXT"), data: os.Getenv("TOOLFABRIC_DATA")}
	}
	if t.nats != "" || t.context != "" {
		t.data = "" // as the commands do, which know a directory always
	}
	if t == (target{}) {
		t.memory = weak.Make(sessions)
	}
	t.creds = cmp.Or(f.Creds, os.Getenv("TOOLFABRIC_CREDS"))
	t.namespace = cmp.Or(f.Namespace, os.Getenv("TOOLFABRIC_NAMESPACE"))
	return t
}

// fabric is a connection, a server if it is ours, and the agents that are served on it.
type fabric struct {
	key    target
	log    *slog.Logger
	conn   *natswire.Conn
	closes []func() // in reverse

	gone context.Context // ends with the connection
	lose context.CancelCauseFunc

	uses int // guarded by fabrics
	mu   sync.Mutex
	apps map[string]*app
}

// fabrics are those of this process, by target.
var fabrics = struct {
	sync.Mutex
	open map[target]*fabric
}{open: map[target]*fabric{}}

// use finds or opens the fabric of a session service. It is closed when release was called as often; one in memory also
// when nobody holds its service any more: what is in it cannot be reached then.
func (f Fabric) use(sessions *session.Sessions) (*fabric, error) {
	if given := []string{f.NATS, f.Context, f.Data}; (given[0] != "" || given[1] != "") && given[2] != "" {
		return nil, protocol.Errorf(protocol.CodeUsage, "runner: Fabric names a server and a directory; it runs on one of them")
	}
	key := f.target(sessions)
	fabrics.Lock()
	defer fabrics.Unlock()
	if open := fabrics.open[key]; open != nil {
		open.uses++
		return open, nil
	}
	log := f.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	opened, err := open(key, log)
	if err != nil {
		return nil, err
	}
	opened.uses++
	fabrics.open[key] = opened
	if key.memory != (weak.Pointer[session.Sessions]{}) {
		runtime.AddCleanup(sessions, func(f *fabric) { go f.release(true) }, opened)
	}
	return opened, nil
}

// release gives back one use, or all of them when nobody is left to do so, and closes the fabric with the last.
func (f *fabric) release(all bool) {
	fabrics.Lock()
	f.uses--
	last := (all || f.uses == 0) && fabrics.open[f.key] == f
	if last {
		delete(fabrics.open, f.key) // a use that begins now opens another one
	}
	fabrics.Unlock()
	if last {
		f.close()
	}
}

func open(key target, log *slog.Logger) (*fabric, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	f := &fabric{key: key, log: log, apps: map[string]*app{}}
	f.gone, f.lose = context.WithCancelCause(context.Background())
	err := f.connect(ctx)
	if err == nil {
		err = natswire.Provision(ctx, f.conn, natswire.ProvisionConfig{Memory: f.inMemory()})
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

var errClosed = errors.New("the runner was closed")

func (f *fabric) inMemory() bool { return f.key.nats == "" && f.key.context == "" && f.key.data == "" }

func (f *fabric) connect(ctx context.Context) error {
	cfg := natswire.Config{
		URL: f.key.nats, Creds: f.key.creds, Context: f.key.context, Namespace: f.key.namespace, Name: "toolfabric runner",
		Listener: f.hear,
	}
	if cfg.URL == "" && cfg.Context == "" {
		server, url, err := f.startServer()
		if err != nil {
			return err
		}
		if cfg.URL = url; server != nil {
			cfg.InProcess = server.InProcess()
		}
	}
	conn, err := natswire.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	f.conn = conn
	f.closes = append(f.closes, conn.Close)
	return nil
}

// startServer starts a server in this process, or finds the one that has the directory: its url.
func (f *fabric) startServer() (server *embed.Server, url string, err error) {
	cfg := embed.Config{Dir: f.key.data, Listen: "127.0.0.1:0", Log: f.log}
	if f.inMemory() {
		// The server asks for a directory, and puts nothing there when all streams are in memory.
		if cfg.Dir, err = os.MkdirTemp("", "toolfabric-"); err != nil {
			return nil, "", protocol.Wrap(err, protocol.CodeUsage, "a server in memory needs a temporary directory to start")
		}
		defer os.RemoveAll(cfg.Dir)
		cfg.Listen = ""
	}
	server, err = embed.Start(cfg)
	if err != nil {
		if at := boot.ReadEndpoint(cfg.Dir); at.URL != "" && !f.inMemory() && protocol.CodeOf(err) == protocol.CodeUsage {
			return nil, at.URL, nil
		}
		return nil, "", err
	}
	f.closes = append(f.closes, server.Shutdown)
	if f.inMemory() {
		return server, "", nil
	}
	remove, err := boot.WriteEndpoint(cfg.Dir, boot.Endpoint{URL: server.URL(), PID: os.Getpid(), Sync: "100ms"})
	if err != nil {
		return nil, "", err
	}
	f.closes = append(f.closes, remove)
	return server, "", nil
}

// hear notes the end of the connection: what waits for it would wait for ever.
func (f *fabric) hear(n natswire.Notice) {
	boot.Listener(f.log)(n)
	if n.Kind == natswire.Closed {
		f.lose(cmp.Or(n.Err, error(protocol.Errorf(protocol.CodeUnreachable, "the connection was closed"))))
	}
}

// close drains what is served and ends the connection and the server.
func (f *fabric) close() {
	f.lose(errClosed)
	f.mu.Lock()
	apps := f.apps
	f.apps = nil
	f.mu.Unlock()
	for _, a := range apps {
		a.end()
	}
	for i := len(f.closes) - 1; i >= 0; i-- {
		f.closes[i]()
	}
}
