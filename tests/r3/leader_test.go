package r3

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

const refundScript = `rules:
  - user: 'refund (?P<order>.+)'
    calls: [{tool: refund, args: {order: '{{ .order }}'}}]
  - user: 'refund'
    after: [refund]
    text: finished
`

// sessions is how many are parked when a leader dies.
const sessions = 10

// The servers that lead the streams die one after the other while sessions are parked; each comes back before the next dies.
func TestParkedSessionsOutliveTheLeadersOfTheirStreams(t *testing.T) {
	c := start(t)
	conn := c.dial(t)
	provision(t, conn)
	n := conn.Names()
	runs := serve(t, c)
	people, err := client.New(client.Config{Bus: conn, Names: n, Client: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{n.Log(), n.Approval(), n.Timers()} {
		asked := map[string]client.Receipt{}
		for i := range sessions {
			var r client.Receipt
			id := fmt.Sprintf("%s-%d", stream, i)
			await(t, "an input is accepted", func(ctx context.Context) (err error) {
				r, err = people.Send(ctx, "clerk", id, client.Text("refund "+id), client.WithInputID(id))
				return err
			})
			asked[id] = r
		}
		waits := map[string]client.Parked{}
		await(t, "all sessions are parked", func(ctx context.Context) error {
			page, err := people.Parked(ctx, client.ParkedFilter{Kind: client.WaitsConfirmation}, 0, 1000)
			for _, p := range page.Parked {
				if _, ours := asked[p.Session]; ours {
					waits[p.Session] = p
				}
			}
			if err == nil && len(waits) < sessions {
				err = fmt.Errorf("%d of %d are", len(waits), sessions)
			}
			return err
		})

		dead := c.leader(conn, stream)
		c.kill(dead)
		began := time.Now()
		for _, p := range waits {
			await(t, "an approval is stored", func(ctx context.Context) error {
				_, err := conn.Publish(ctx, natswire.Msg{Subject: n.ApprovalSubject(p.App, p.Session, p.Confirmation.ID, "ann"), Data: []byte(`{"confirmed":true}`)})
				return err
			})
		}
		stored := time.Since(began)
		for id, r := range asked {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			out, err := people.WaitEnd(ctx, r.App, r.Session, r.InputID)
			cancel()
			if err != nil || out.Text != "finished" || out.Problem != nil {
				t.Fatalf("session %s ended with %+v, %v", id, out, err)
			}
			if got := runs.of(id); got != 1 {
				t.Errorf("the effect of %s happened %d times", id, got)
			}
		}
		t.Logf("the leader of %s died: the approvals were stored after %.1fs, all was answered after %.1fs", stream, stored.Seconds(), time.Since(began).Seconds())
		c.start(dead)
		await(t, "all servers are there again", func(ctx context.Context) error {
			back, err := natswire.Connect(ctx, natswire.Config{URL: c.urls[dead]})
			if err == nil {
				back.Close()
			}
			return err
		})
	}
}

// counter is how often each order was refunded.
type counter struct {
	mu   sync.Mutex
	runs map[string]int
}

func (c *counter) of(order string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[order]
}

// serve runs two coordinators and a worker.
func serve(t *testing.T, c *cluster) *counter {
	t.Helper()
	count := &counter{runs: map[string]int{}}
	refund, err := functiontool.New(functiontool.Config{Name: "refund", Description: "Pays back.", RequireConfirmation: true},
		func(_ tool.Context, in struct {
			Order string `json:"order"`
		}) (map[string]any, error) {
			count.mu.Lock()
			defer count.mu.Unlock()
			count.runs[in.Order]++
			return map[string]any{"paid": in.Order}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse([]byte(refundScript))
	if err != nil {
		t.Fatal(err)
	}
	clerk, err := llmagent.New(llmagent.Config{Name: "clerk", Model: scripted.New("scripted", script), Instruction: "Pay back.", Tools: []tool.Tool{tool.Pool("refund")}})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	for range 2 {
		conn := c.dial(t)
		ready := make(chan struct{}, 1)
		one, err := coordinator.New(coordinator.Config{Bus: conn, Names: conn.Names(), Agents: []agent.Agent{clerk}, Logger: quiet, Ready: func() { ready <- struct{}{} }})
		if err != nil {
			t.Fatal(err)
		}
		background(t, one.Run)
		receive(t, "coordinator", ready)
	}
	conn, serving := c.dial(t), make(chan struct{}, 100)
	w, err := worker.New(worker.Config{Bus: conn, Names: conn.Names(), Tools: []tool.Tool{refund}, Logger: quiet, Listener: worker.Events{Serving: func(string) {
		select {
		case serving <- struct{}{}:
		default:
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	background(t, w.Run)
	receive(t, "worker", serving)
	return count
}

func background(t *testing.T, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("a member ended: %v", err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
}

func receive(t *testing.T, what string, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		t.Fatalf("no %s in %s", what, patience)
	}
}
