package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

type payment struct {
	Amount int `json:"amount"`
}

// servePay serves transfer, which needs a person's word, and report, whose result comes from outside. paid counts effects.
func (p *place) servePay(url string) (paid *atomic.Int64) {
	p.t.Helper()
	paid = new(atomic.Int64)
	transfer, err := functiontool.New(functiontool.Config{Name: "transfer", Description: "Pays.", RequireConfirmation: true}, func(_ tool.Context, in payment) (map[string]any, error) {
		paid.Add(1)
		return map[string]any{"paid": in.Amount}, nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	report, err := functiontool.New(functiontool.Config{Name: "report", Description: "Orders a report.", IsLongRunning: true}, func(tool.Context, struct{}) (map[string]any, error) { return nil, nil })
	if err != nil {
		p.t.Fatal(err)
	}
	conn, err := natswire.Connect(p.t.Context(), natswire.Config{URL: url})
	if err != nil {
		p.t.Fatal(err)
	}
	w, err := worker.New(worker.Config{Bus: conn, Names: conn.Names(), Tools: []tool.Tool{transfer, report}})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { _ = w.Run(ctx) })
	p.t.Cleanup(func() { stop(); working.Wait(); conn.Close() })
	await(p.t, "the tools are served", func() bool {
		tools := p.run("tools").stdout.String()
		return strings.Contains(tools, "transfer  at_most_once  1") && strings.Contains(tools, "report ")
	})
	return paid
}

// parks makes a call that waits, and returns its id and its session.
func (p *place) parks(tool, args string) (call, session string) {
	p.t.Helper()
	out := decode[struct {
		Session string
		Waiting struct{ Calls []struct{ Call string } }
	}](p.t, p.ok("call", tool, "--args", args, "--output", "json"))
	if len(out.Waiting.Calls) != 1 {
		p.t.Fatalf("%+v", out)
	}
	return out.Waiting.Calls[0].Call, out.Session
}

func TestCallsWaitForPeopleAndForResultsOnEveryVerb(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	up := p.up()
	url := up.says(&up.stderr, "toolfabric is up at (nats://[0-9.:]+)")[1]
	paid := p.servePay(url)

	// Approved: it runs once, with what was shown; a second word does not count.
	call, session := p.parks("transfer", `{"amount":5}`)
	shown := p.ok("approvals", "show", call)
	if !strings.Contains(shown, `"amount": 5`) || paid.Load() != 0 {
		t.Errorf("%d effects\n%s", paid.Load(), shown)
	}
	if list := p.ok("approvals", "ls"); !strings.Contains(list, call) {
		t.Error(list)
	}
	p.ok("approvals", "approve", call, "--as", "ann")
	if got := p.ok("call", "transfer", "--args", `{"amount":5}`, "--id", session, "--wait"); got != "{\"paid\":5}\n" || paid.Load() != 1 {
		t.Errorf("%q, %d effects", got, paid.Load())
	}
	if c := p.run("approvals", "approve", call); c.exit() != 5 || paid.Load() != 1 {
		t.Errorf("a second approval: exit %d, %s", c.exit(), c.stderr.String())
	}
	if got := p.ok("calls", "show", call); !strings.Contains(got, "completed") {
		t.Error(got)
	}

	// Denied: nothing runs, and the caller is told.
	call, session = p.parks("transfer", `{"amount":6}`)
	p.ok("approvals", "deny", call, "--remark", "too much")
	if c := p.run("call", "transfer", "--args", `{"amount":6}`, "--id", session, "--wait"); c.exit() != 5 || !strings.Contains(c.stderr.String(), "denied") {
		t.Errorf("exit %d, %s", c.exit(), c.stderr.String())
	}

	// Edited: what runs is what the second decision was about.
	call, session = p.parks("transfer", `{"amount":7}`)
	p.ok("approvals", "approve", call, "--args", `{"amount":1}`, "--as", "ann")
	await(t, "the edited arguments wait", func() bool {
		return strings.Contains(p.run("approvals", "show", call).stdout.String(), `"amount": 1`)
	})
	p.ok("approvals", "approve", call, "--as", "zoe")
	if got := p.ok("call", "transfer", "--args", `{"amount":7}`, "--id", session, "--wait"); got != "{\"paid\":1}\n" || paid.Load() != 2 {
		t.Errorf("%q, %d effects", got, paid.Load())
	}

	// A result from outside, after progress; the second one is refused.
	call, session = p.parks("report", `{}`)
	p.ok("calls", "complete", call, "--percent", "40")
	p.ok("calls", "complete", call, "--result", `{"url":"https://example.com/1"}`)
	if got := p.ok("call", "report", "--id", session, "--wait"); !strings.Contains(got, "example.com/1") {
		t.Error(got)
	}
	if c := p.run("calls", "complete", call, "--result", "2"); c.exit() != 5 {
		t.Errorf("exit %d, %s", c.exit(), c.stderr.String())
	}

	// Cancelled, by call and by session.
	call, session = p.parks("report", `{}`)
	p.ok("calls", "cancel", call)
	_, other := p.parks("transfer", `{"amount":8}`)
	p.ok("sessions", "cancel", other)
	for _, id := range []string{session, other} {
		await(t, "a cancelled call waits no more", func() bool { return !strings.Contains(p.ok("calls", "ls"), id) })
	}
	if paid.Load() != 2 {
		t.Errorf("%d effects", paid.Load())
	}

	// An input that nobody can read is a dead letter: shown, not retried, dropped.
	conn, err := natswire.Connect(t.Context(), natswire.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Publish(t.Context(), natswire.Msg{Subject: conn.Names().InputSubject("calls", "local", "s9"), Data: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	type letters struct {
		Letters []struct {
			Number json.Number
			Kind   string
		}
	}
	var list letters
	await(t, "the input is a dead letter", func() bool {
		list = decode[letters](t, p.ok("dlq", "ls", "--output", "json"))
		return len(list.Letters) == 1
	})
	number := list.Letters[0].Number.String()
	p.ok("dlq", "show", number)
	if c := p.run("dlq", "retry", number); c.exit() != 5 || !strings.Contains(c.stderr.String(), "refused again") {
		t.Errorf("exit %d, %s", c.exit(), c.stderr.String())
	}
	p.ok("dlq", "drop", number)
	if got := decode[letters](t, p.ok("dlq", "ls", "--output", "json")); len(got.Letters) != 0 {
		t.Errorf("%+v", got)
	}
}
