package badinput

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// denied is what each role may not do: "+" publishes, "-" listens.
var denied = map[string][]string{
	"w_add": {
		"+tf.result.slow.s.c.0", "+tf.wake.house.slow.s.c.0", "+tf.approval.house.s.q.w_add", "+tf.receipt.house.s.q", "+$KV.PARK.house.s.c", "+tf.claim.slow.c.0", "+tf.progress.slow.s.c", "+tf.reg.slow.w-add", "+tf.reg.add.w-other",
		"+tf.call.add", "+tf.call.slow", "+tf.input.house.tester.s", "+tf.input.calls.w_add.s", "+tf.log.house.s", "+tf.timer.house.s.g", "+tf.due.house.s",
		"+tf.done.s", "+tf.live.house.s", "+tf.own.c", "+tf.cancel.slow.c", "+tf.token.s.1", "+tf.dlq.input.x", "+tf.dlq.session.x",
		"+$KV.TOOLS.slow.x", "+$O.OBJ.M.x", "+$O.SKILLS.M.x", "+$O.SKILLS.C.x", "+$JS.ACK.CALLS.slow.1.1.1.1.0", "+$JS.ACK.INPUT.house.1.1.1.1.0",
		"+$JS.API.CONSUMER.MSG.NEXT.CALLS.slow", "+$JS.API.CONSUMER.INFO.CALLS.slow", "+$JS.API.CONSUMER.CREATE.CALLS.mine.tf.call.slow",
		"+$JS.API.CONSUMER.DELETE.CALLS.add", "+$JS.API.CONSUMER.PAUSE.CALLS.add", "+$JS.API.STREAM.MSG.GET.CALLS", "+$JS.API.STREAM.MSG.GET.RESULTS",
		"+$JS.API.DIRECT.GET.RESULTS", "+$JS.API.DIRECT.GET.LOG", "+$JS.API.STREAM.PURGE.RESULTS", "+$JS.API.STREAM.MSG.DELETE.RESULTS",
		"+$JS.API.STREAM.INFO.CALLS", "+$JS.API.STREAM.UPDATE.CALLS", "+$JS.API.STREAM.DELETE.CALLS", "+$JS.API.STREAM.CREATE.MINE",
		"+$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.CALLS.add", "+_INBOX_tester.x",
		"-tf.call.add", "-tf.call.>", "-tf.done.>", "-tf.log.>", "-tf.live.>", "-tf.input.>", "-tf.cancel.slow.*", "-tf.result.add.>", "-tf.>", "->", "-_INBOX_tester.>", "-$JS.>",
	},
	"mallory": {
		"+tf.input.house.tester.s", "+tf.input.house.agent.s", "+tf.call.add", "+tf.log.house.s", "+tf.result.add.s.c.0", "+tf.wake.house.add.s.c.0", "+tf.approval.house.s.q.ann", "+tf.approval.house.s.q.mallory", "+$KV.PARK.house.s.c", "+tf.claim.add.c.0", "+tf.reg.add.w",
		"+tf.timer.house.s.g", "+tf.due.house.s", "+tf.cancel.add.c", "+tf.dlq.input.x", "+$KV.TOOLS.add.x", "+$O.OBJ.M.x", "+$O.SKILLS.M.x",
		"+$JS.API.STREAM.PURGE.LOG", "+$JS.API.STREAM.PURGE.INPUT", "+$JS.API.CONSUMER.MSG.NEXT.INPUT.house", "+$JS.API.CONSUMER.DELETE.INPUT.house",
		"+$JS.API.DIRECT.GET.CALLS", "+$JS.API.DIRECT.GET.INPUT", "+$JS.ACK.INPUT.house.1.1.1.1.0", "+$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.CALLS.add",
		"-tf.input.>", "-tf.call.>", "-_INBOX_coordinator.>", "-_INBOX_tester.>", "->",
	},
	"ann": {
		"+tf.approval.house.s.q.bob", "+tf.input.house.ann.s", "+tf.receipt.house.s.q", "+tf.wake.house.add.s.c.0", "+$KV.PARK.house.s.c", "+$JS.API.DIRECT.GET.LOG", "-tf.live.>",
	},
	"coordinator": {
		"+tf.approval.house.s.q.ann", "+$O.SKILLS.M.x", "+$JS.API.STREAM.PURGE.OBJ_SKILLS",
		"+tf.input.house.tester.s", "+tf.reg.add.w-add", "+$JS.API.STREAM.CREATE.MINE", "+$JS.API.STREAM.DELETE.LOG", "+$JS.API.STREAM.UPDATE.LOG",
		"+$JS.API.CONSUMER.DELETE.CALLS.add", "+$JS.API.STREAM.PURGE.RESULTS", "+$JS.API.STREAM.MSG.DELETE.LOG", "+$JS.API.CONSUMER.MSG.NEXT.CALLS.add",
		"+$JS.API.CONSUMER.CREATE.LOG.x.tf.log.>", "-tf.call.>", "-_INBOX_tester.>", "->",
	},
}

func TestDeniedOperationsAreForbidden(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natstest.Auth(roles))
	f := newFabricOn(t, s, everybody, nil)
	count := 0
	for name, operations := range denied {
		conn := s.Dial(t, natswire.Config{URL: as(s, name)})
		for _, op := range operations {
			count++
			subject := op[1:]
			var err error
			if op[0] == '-' {
				var stop func()
				if stop, err = conn.Subscribe(subject, func(natswire.Msg) {}); err == nil {
					stop()
				}
			} else {
				_, err = conn.Request(t.Context(), natswire.Msg{Subject: subject})
			}
			if code := protocol.CodeOf(err); code != protocol.CodeForbidden {
				t.Errorf("%s %s: %v, want forbidden", name, op, err)
			} else if !strings.Contains(err.Error(), subject) {
				t.Errorf("%s %s: %q does not say what is missing", name, op, err)
			}
		}
	}
	if count < 40 {
		t.Errorf("%d operations, want 40 or more", count)
	}
	f.nothingLost()
}

// allowed is what each role does, through the calls of the fabric itself.
func (f *fabric) allowed(ctx context.Context, users map[string]*natswire.Conn, r client.Receipt) map[string]func() error {
	n, w, c := f.names, users["w_add"], users["coordinator"]
	publish := func(conn *natswire.Conn, subject, data string) func() error {
		return func() error {
			_, err := conn.Publish(ctx, natswire.Msg{Subject: subject, Data: []byte(data)})
			return err
		}
	}
	subscribe := func(conn *natswire.Conn, subject string) func() error {
		return func() error {
			stop, err := conn.Subscribe(subject, func(natswire.Msg) {})
			if err == nil {
				stop()
			}
			return err
		}
	}
	last := func(conn *natswire.Conn, stream, subject string) func() error {
		return func() error {
			_, err := conn.Last(ctx, stream, subject)
			if protocol.CodeOf(err) == protocol.CodeNotFound {
				return nil
			}
			return err
		}
	}
	cl := f.client
	return map[string]func() error{
		"worker: store a result":         publish(w, n.ResultSubject("add", "s", "c1", 0), "{}"),
		"worker: answer and wake":        publish(w, n.WakeSubject("house", "add", "s", "c1", 0), "{}"),
		"worker: keep a late result":     publish(w, n.DeadLetterSubject("late", "c1-0"), `{"v":1}`),
		"worker: store a claim":          publish(w, n.ClaimSubject("add", "c1", 0), "{}"),
		"worker: register":               publish(w, n.RegistrationSubject("add", "w-add"), "{}"),
		"worker: keep a dead letter":     publish(w, n.DeadLetterSubject("call", "c1"), `{"v":1}`),
		"worker: hear cancels":           subscribe(w, n.CancelSubject("add", "*")),
		"worker: see its consumer":       func() error { _, err := w.ConsumerState(ctx, n.Calls(), "add"); return err },
		"coordinator: append to a log":   publish(c, n.LogSubject("house", "permitted"), `{"v":1,"stop":{"kind":"done"}}`),
		"coordinator: send a call":       publish(c, n.CallSubject("nobody"), "{}"),
		"coordinator: decide a result":   publish(c, n.ResultSubject("slow", "s", "c2", 0), "{}"),
		"coordinator: decide a claim":    publish(c, n.ClaimSubject("slow", "c2", 0), "{}"),
		"coordinator: keep a letter":     publish(c, n.DeadLetterSubject("session", "s"), `{"v":1}`),
		"coordinator: pin a declaration": func() error { _, err := c.Publish(ctx, natswire.DeleteKey(n.ToolSubject("nobody", "0"))); return err },
		"coordinator: set a guard": func() error {
			return natswire.SetGuard(ctx, c, n, "house", "s", time.Now().Add(time.Hour), protocol.Guard{Adoption: "g"})
		},
		"coordinator: remove a guard":  func() error { return natswire.RemoveGuard(ctx, c, n, "house", "s", "g") },
		"coordinator: drop a log":      func() error { return c.Purge(ctx, n.Log(), n.LogSubject("house", "permitted"), 1) },
		"coordinator: take a call off": func() error { return c.Remove(ctx, n.Calls(), 1<<40) },
		"coordinator: store an object and read it": func() error {
			if err := c.PutObject(ctx, "o", []byte("x")); err != nil {
				return err
			}
			_, err := c.GetObject(ctx, "o")
			return err
		},
		"coordinator: list the skills": func() error { _, err := c.Skills().List(ctx); return err },
		"coordinator: read a skill": func() error {
			if _, _, err := c.Skills().Get(ctx, "nosuch"); protocol.CodeOf(err) != protocol.CodeNotFound {
				return err
			}
			return nil
		},
		"coordinator: read a log":        last(c, n.Log(), n.LogSubject("house", r.Session)),
		"coordinator: read a mailbox":    last(c, n.Results(), n.ResultSubject("add", "s", "c1", 0)),
		"coordinator: read a claim":      last(c, n.Results(), n.ClaimSubject("add", "c1", 0)),
		"coordinator: read a queue":      last(c, n.Calls(), n.CallSubject("nobody")),
		"coordinator: read the registry": func() error { _, err := c.Latest(ctx, n.Registry(), n.RegistrationSubject("*", "*")); return err },
		"coordinator: read the tools":    func() error { _, err := c.Latest(ctx, n.ToolsStream(), n.ToolSubject("*", "*")); return err },
		"coordinator: make a consumer": func() error {
			return c.EnsureConsumer(ctx, natswire.Consumer{Stream: n.Calls(), Durable: "other", Filter: n.CallSubject("other"), AckWait: time.Second, MaxDeliver: 3, MaxAckPending: -1})
		},
		"coordinator: hear results":       subscribe(c, n.DoneSubject("s")),
		"coordinator: hear beats":         subscribe(c, n.RegistrationSubject("*", "*")),
		"coordinator: hear its questions": subscribe(c, n.OwnSubject("c")),
		"client: list sessions":           func() error { _, err := cl.Sessions(ctx, "house"); return err },
		"client: read a log":              func() error { _, err := cl.Log(ctx, "house", r.Session, 0); return err },
		"client: see events":              func() error { _, err := cl.Events(ctx, "house", r.Session); return err },
		"client: trace":                   func() error { _, err := cl.Trace(ctx, "house", r.Session); return err },
		"client: list tools":              func() error { _, err := cl.Tools(ctx); return err },
		"client: list pools":              func() error { _, err := cl.Pools(ctx); return err },
		"client: call":                    func() error { _, err := cl.Call(ctx, "add", json.RawMessage(`{}`)); return err },
		"client: delete a session":        func() error { return cl.Delete(ctx, "house", r.Session) },
	}
}

func TestFabricRunsUnderLeastPrivilege(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natstest.Auth(roles))
	f := newFabricOn(t, s, everybody, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := f.client.Send(ctx, "house", "", client.Text("add"))
	if err != nil {
		t.Fatal(err)
	}
	if out := f.outcome(r.App, r.Session, r.InputID); out.Problem != nil || out.Text != "the sum is map[sum:42]" {
		t.Fatalf("the run ended with %+v", out)
	}
	users := map[string]*natswire.Conn{}
	for _, name := range []string{"w_add", "coordinator"} {
		users[name] = s.Dial(t, natswire.Config{URL: as(s, name)})
	}
	all := f.allowed(ctx, users, r)
	if len(all) < 25 {
		t.Errorf("%d operations, want 25 or more", len(all))
	}
	last := all["client: delete a session"]
	delete(all, "client: delete a session")
	for what, do := range all {
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := last(); err != nil {
		t.Errorf("delete: %v", err)
	}
	f.nothingLost()
	if line := f.said.with("forbidden"); line != "" {
		t.Errorf("the coordinator misses a permission: %s", line)
	}
}
