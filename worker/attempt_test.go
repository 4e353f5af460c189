package worker_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

const textSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`

func TestCallOfAnotherVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		own    fn
		effect tool.Effect // of the call
		args   string
		code   protocol.Code // "" runs
	}{
		"runs when it fits":              {fn{settings: tool.Settings{Effect: tool.Read}}, tool.Read, `{"text":"x"}`, ""},
		"runs once when it fits":         {fn{settings: tool.Settings{Effect: tool.AtMostOnce}}, tool.AtMostOnce, `{"text":"x"}`, ""},
		"with other arguments":           {fn{settings: tool.Settings{Effect: tool.Read}}, tool.Read, `{}`, protocol.CodeDigestMismatch},
		"with another effect":            {fn{settings: tool.Settings{Effect: tool.Read}}, tool.AtMostOnce, `{"text":"x"}`, protocol.CodeDigestMismatch},
		"that a person did not agree to": {fn{settings: tool.Settings{Effect: tool.Read, Confirm: true}}, tool.Read, `{"text":"x"}`, protocol.CodeDigestMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				own := tc.own
				runs := 0
				own.name, own.schema = "tool", textSchema
				own.run = func(tool.Context, json.RawMessage) (json.RawMessage, error) {
					runs++
					return json.RawMessage(`{}`), nil
				}
				f.serve(&own)
				r := &record{}
				f.start("w1", worker.Config{Listener: r.events()}, &own)
				c := f.call(&own, "c1", tc.args)
				c.Digest, c.Effect = "another", tc.effect
				f.publish(c)
				after(30 * time.Second)
				if tc.code == "" {
					f.want(c, protocol.OutcomeCompleted, "", "")
					return
				}
				got := f.want(c, protocol.OutcomeFailed, tc.code, "")
				if runs != 0 || !strings.Contains(string(got.Value), "not executed") {
					t.Errorf("%d runs, told as %s", runs, got.Value)
				}
				if want := []string{"c1/1 returned", "c1/2 returned", "c1/3 returned", "c1/4 returned", "c1/5 answered"}; !slices.Equal(r.ways(), want) {
					t.Errorf("got %v, want %v", r.ways(), want)
				}
			})
		})
	}
}

// Workers of two versions serve side by side: a call goes to the one that has its version, whoever gets it first.
func TestCallFindsTheWorkerOfItsVersion(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		before, now := echo("tool", tool.Read), echo("tool", tool.AtMostOnce)
		f.serve(now)
		r := &record{}
		f.start("w1", worker.Config{Listener: r.events()}, before)
		c := f.call(now, "c1", `{}`)
		f.publish(c)
		after(50 * time.Millisecond)
		if want := []string{"c1/1 returned"}; !slices.Equal(r.ways(), want) {
			t.Fatalf("got %v, want %v", r.ways(), want)
		}
		f.start("w2", worker.Config{}, now)
		after(2 * time.Second)
		if got := f.want(c, protocol.OutcomeCompleted, "", ""); got.Worker != "w2" {
			t.Errorf("run by %s", got.Worker)
		}
	})
}

func TestArgumentsThatDoNotFitAreAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("echo", tool.Read)
		e.schema = textSchema
		f.serve(e)
		f.start("w1", worker.Config{}, e)
		c := f.call(e, "c1", `{"text":1}`)
		f.publish(c)
		f.want(c, protocol.OutcomeFailed, protocol.CodeSchemaViolation, "")
	})
}

// A worker dies between its claim and its result (K13, K14).
func TestCrashMidCall(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Read, tool.Idempotent, tool.AtMostOnce} {
		t.Run(string(effect), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				g := newGate("slow", effect)
				f.consumer("slow", 5*time.Second, 5)
				f.start("w1", worker.Config{}, g)
				c := f.call(g, "c1", `{}`)
				f.publish(c)
				f.world.Kill("w1")
				r := &record{}
				f.start("w2", worker.Config{Listener: r.events()}, g)
				after(4 * time.Second)
				close(g.open)
				after(20 * time.Second)
				if effect == tool.AtMostOnce {
					if g.starts() != 1 || !slices.Equal(r.ways(), []string{"c1/2 dropped"}) {
						t.Errorf("%d starts, %v: it must not start again", g.starts(), r.ways())
					}
					if _, ok := f.result(c); ok {
						t.Error("who did not run it answered it")
					}
					return
				}
				if got := f.want(c, protocol.OutcomeCompleted, "", ""); got.Worker != "w2" || got.Attempt != 2 {
					t.Errorf("run by %s, attempt %d", got.Worker, got.Attempt)
				}
			})
		})
	}
}

// A call that kills each worker it meets is left to the consumer's MaxDeliver: nobody answers it here.
func TestPoisonIsLeftToTheBroker(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("poison", tool.Idempotent)
		runs := 0
		e.run = func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
			runs++
			f.world.Kill("w" + string(rune('0'+runs)))
			<-ctx.Done()
			return nil, ctx.Err()
		}
		f.consumer("poison", 2*time.Second, 3)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		for i := range 5 {
			f.start("w"+string(rune('1'+i)), worker.Config{}, e)
			after(5 * time.Second)
		}
		if runs != 3 {
			t.Errorf("%d runs, want MaxDeliver", runs)
		}
		if _, ok := f.result(c); ok {
			t.Error("a dead worker answered")
		}
	})
}

// A worker is paused beyond its lease; another one takes the call and answers; the late twin is refused.
func TestLateTwinIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.Idempotent)
		f.consumer("slow", 5*time.Second, 5)
		r := &record{}
		f.start("w1", worker.Config{Slots: 1, Listener: r.events()}, g)
		c := f.call(g, "c1", `{}`)
		f.publish(c)
		f.world.Pause("w1")
		f.start("w2", worker.Config{}, g)
		after(6 * time.Second)
		if g.starts() != 2 {
			t.Fatalf("%d starts", g.starts())
		}
		close(g.open)
		if got := f.want(c, protocol.OutcomeCompleted, "", ""); got.Worker != "w2" {
			t.Fatalf("answered by %s", got.Worker)
		}
		f.world.Resume("w1")
		after(time.Second)
		if !slices.Equal(r.ways(), []string{"c1/1 refused"}) {
			t.Errorf("the twin was %v", r.ways())
		}
		if got, _ := f.result(c); got.Worker != "w2" {
			t.Errorf("the stored result is now by %s", got.Worker)
		}
	})
}
