package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

const (
	appName  = "bench"
	toolName = "echo"

	workers     = 2
	workerSlots = 256  // of each: as in the raw round trip, calls wait for the broker and not for a slot
	sessionCap  = 1000 // model requests in a run, beyond what any measured session makes
)

// fabric is a coordinator, workers and a client on a broker, each with a connection of its own, in a namespace of its own.
type fabric struct {
	client *client.Client
	conn   *natswire.Conn // of the client
	model  *puppet        // nil when another one is asked
	built  atomic.Int64   // nanoseconds that the coordinator spent on making model requests so far

	conns  []*natswire.Conn
	tracer *sdk.TracerProvider // of coordinator and workers
	cancel context.CancelFunc
	actors sync.WaitGroup
	failed chan error // holds the first actor's failure
}

// openFabric starts a fabric with the puppet as model and one tool of that effect class, which answers at once, and waits
// until it serves. close must be called.
func openFabric(ctx context.Context, b *Broker, namespace string, effect tool.Effect) (*fabric, error) {
	type args struct {
		Text string `json:"text"`
	}
	echo, err := functiontool.New(functiontool.Config{Name: toolName, Description: "Answers", Effect: effect},
		func(tool.Context, args) (string, error) { return answerText, nil })
	if err != nil {
		return nil, err
	}
	p := newPuppet()
	f, err := openFabricOf(ctx, b, namespace, p, echo)
	if err == nil {
		f.model = p
	}
	return f, err
}

// openFabricOf is openFabric with another model and other tools.
func openFabricOf(ctx context.Context, b *Broker, namespace string, llm model.LLM, tools ...tool.Tool) (*fabric, error) {
	f := &fabric{tracer: newTracing(), failed: make(chan error, 1+workers)}
	actorsCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	if err := f.open(ctx, actorsCtx, b, namespace, llm, tools); err != nil {
		f.close()
		return nil, fmt.Errorf("fabric %s: %w", namespace, err)
	}
	return f, nil
}

func (f *fabric) open(ctx, actors context.Context, b *Broker, namespace string, llm model.LLM, tools []tool.Tool) error {
	conn, err := f.connect(ctx, b, namespace, "client")
	if err != nil {
		return err
	}
	f.conn = conn
	if err := natswire.Provision(ctx, conn, natswire.ProvisionConfig{}); err != nil {
		return err
	}
	if f.client, err = client.New(client.Config{Bus: conn, Names: conn.Names(), Client: "bench"}); err != nil {
		return err
	}
	if err := f.coordinate(ctx, actors, b, namespace, llm, tools); err != nil {
		return err
	}
	serving := make(chan struct{}, workers)
	for range workers {
		if err := f.work(ctx, actors, b, namespace, tools, serving); err != nil {
			return err
		}
	}
	for range workers {
		select {
		case <-serving:
		case err := <-f.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return f.taken(ctx)
}

// taken waits until a coordinator takes the inputs of the app.
func (f *fabric) taken(ctx context.Context) error {
	for {
		_, err := f.conn.ConsumerState(ctx, f.conn.Names().Input(), appName)
		if protocol.CodeOf(err) != protocol.CodeNotFound {
			return err
		}
		if err := natswire.Sleep(ctx, natswire.SystemClock{}, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func (f *fabric) connect(ctx context.Context, b *Broker, namespace, name string) (*natswire.Conn, error) {
	cfg := natswire.Config{URL: b.URL, Namespace: namespace, Name: "bench-" + name}
	if b.Server != nil {
		cfg.InProcess = b.Server
	}
	conn, err := natswire.Connect(ctx, cfg)
	if err == nil {
		f.conns = append(f.conns, conn)
	}
	return conn, err
}

func (f *fabric) coordinate(ctx, actors context.Context, b *Broker, namespace string, llm model.LLM, tools []tool.Tool) error {
	conn, err := f.connect(ctx, b, namespace, "coordinator")
	if err != nil {
		return err
	}
	pools := make([]tool.Tool, len(tools))
	for i, t := range tools {
		pools[i] = tool.Pool(t.Name())
	}
	a, err := llmagent.New(llmagent.Config{
		Name: appName, Model: llm, Instruction: "Use the tool.", Tools: pools,
		Limits: llmagent.Limits{ModelCalls: sessionCap},
	})
	if err != nil {
		return err
	}
	c, err := coordinator.New(coordinator.Config{
		Bus: conn, Names: conn.Names(), Agents: []agent.Agent{a}, Tracer: f.tracer,
		Listener: coordinator.Events{RequestBuilt: func(_, _ string, took time.Duration) { f.built.Add(int64(took)) }},
	})
	if err != nil {
		return err
	}
	f.run(actors, c.Run)
	f.run(actors, conn.KeepSentinels)
	return nil
}

// work starts a worker, which tells serving once it serves all of the tools.
func (f *fabric) work(ctx, actors context.Context, b *Broker, namespace string, tools []tool.Tool, serving chan<- struct{}) error {
	conn, err := f.connect(ctx, b, namespace, "worker")
	if err != nil {
		return err
	}
	var mu sync.Mutex
	left := map[string]bool{}
	for _, t := range tools {
		left[t.Name()] = true
	}
	served := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		if delete(left, name); len(left) == 0 && tools != nil {
			tools = nil
			serving <- struct{}{}
		}
	}
	w, err := worker.New(worker.Config{
		Bus: conn, Names: conn.Names(), Tools: tools, Slots: workerSlots, Tracer: f.tracer,
		Listener: worker.Events{Serving: served},
	})
	if err != nil {
		return err
	}
	f.run(actors, w.Run)
	return nil
}

func (f *fabric) run(ctx context.Context, actor func(context.Context) error) {
	f.actors.Go(func() {
		if err := actor(ctx); err != nil {
			f.failed <- err
		} else if ctx.Err() == nil {
			f.failed <- errors.New("an actor ended by itself")
		}
	})
}

// close drains all and closes the connections.
func (f *fabric) close() {
	f.cancel()
	f.actors.Wait()
	_ = f.tracer.Shutdown(context.Background()) // its exporter cannot fail
	for _, conn := range f.conns {
		conn.Close()
	}
}
