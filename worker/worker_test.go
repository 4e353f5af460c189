package worker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/worker"
)

func digest(t testing.TB, tl tool.Tool) string {
	it, err := invoke.New(tl)
	if err != nil {
		t.Fatal(err)
	}
	return it.Digest()
}

func TestWorkerAnswersACall(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Read, tool.Idempotent, tool.AtMostOnce} {
		t.Run(string(effect), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				e := echo("echo", effect)
				f.serve(e)
				p := f.start("w1", worker.Config{}, e)
				c := f.call(e, "c1", `{"n":12345678901234567890}`)
				f.publish(c)
				r := f.want(c, protocol.OutcomeCompleted, "", `{"n":12345678901234567890}`)
				if r.Worker != "w1" || r.Attempt != 1 {
					t.Errorf("run by %q, attempt %d; want w1, attempt 1", r.Worker, r.Attempt)
				}
				f.wantQueue("echo", 0, 0)
				_, err := f.bus.Last(t.Context(), f.names.Results(), f.names.ClaimSubject("echo", "c1", 0))
				if claimed := err == nil; claimed != (effect == tool.AtMostOnce) {
					t.Errorf("claimed: %v", claimed)
				}
				if err := p.drain(); err != nil {
					t.Errorf("Run = %v after a clean drain", err)
				}
			})
		})
	}
}

func TestWorkerRegistersAndTakesItsLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.Read)
		f.serve(g)
		p := f.start("w1", worker.Config{Slots: 3}, g)
		look := func() protocol.Registration {
			t.Helper()
			stored, err := f.bus.Last(t.Context(), f.names.Registry(), f.names.RegistrationSubject("slow", "w1"))
			if err != nil {
				t.Fatal(err)
			}
			r, err := protocol.DecodeRegistration(stored.Data)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := look(); r.Slots != 3 || r.Active != 0 || r.Draining || r.Declaration.Name != "slow" {
			t.Errorf("first beat: %+v", r)
		}
		f.publish(f.call(g, "c1", `{}`))
		after(16 * time.Second) // beyond the life of the first beat
		if r := look(); r.Active != 1 {
			t.Errorf("beat beside a running call: %+v", r)
		}
		p.stop()
		after(0)
		if r := look(); !r.Draining || r.Active != 1 {
			t.Errorf("beat of a draining worker: %+v", r)
		}
		close(g.open)
		if err := p.drain(); err != nil {
			t.Error(err)
		}
		after(2 * time.Second)
		if _, err := f.bus.Last(t.Context(), f.names.Registry(), f.names.RegistrationSubject("slow", "w1")); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("a worker that is gone is still registered: %v", err)
		}
	})
}

func TestNewRefusesWhatCannotServe(t *testing.T) {
	n := names(t)
	e := echo("echo", tool.Read)
	bus := &flaky{}
	for name, tc := range map[string]struct {
		cfg  worker.Config
		code protocol.Code
		text string
	}{
		"no bus":   {worker.Config{Names: n, Tools: []tool.Tool{e}}, protocol.CodeUsage, "Bus"},
		"no names": {worker.Config{Bus: bus, Tools: []tool.Tool{e}}, protocol.CodeUsage, "Names"},
		"no tools": {worker.Config{Bus: bus, Names: n}, protocol.CodeUsage, "tool"},
		"one name twice": {worker.Config{Bus: bus, Names: n, Tools: []tool.Tool{e, tool.ToolWithName(echo("a.b", tool.Read), "echo")}}, protocol.CodeUsage,
			`two tools are named echo: one is of Tools[0], one of Tools[1] (there "a.b"); give one another name: tool.Prefix`}, // H46, AR-CORE-03
		"bad id":               {worker.Config{Bus: bus, Names: n, Tools: []tool.Tool{e}, ID: "a.b"}, protocol.CodeUsage, "id"},
		"negative slots":       {worker.Config{Bus: bus, Names: n, Tools: []tool.Tool{e}, Slots: -1}, protocol.CodeUsage, "slots"},
		"slots of another":     {worker.Config{Bus: bus, Names: n, Tools: []tool.Tool{e}, ToolSlots: map[string]int{"other": 1}}, protocol.CodeUsage, "other"},
		"name of two tokens":   {worker.Config{Bus: bus, Names: n, Tools: []tool.Tool{echo("a.b", tool.Read)}}, protocol.CodeBadName, "a.b"},
		"schema of no schema":  {worker.Config{Bus: bus, Names: n, Tools: []tool.Tool{&fn{name: "x", schema: `{"type":"nothing"}`}}}, protocol.CodeBadDeclaration, "x"},
		"effect of the unsure": {worker.Config{Bus: bus, Names: n, Tools: []tool.Tool{echo("x", "maybe")}}, protocol.CodeBadDeclaration, "maybe"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := worker.New(tc.cfg)
			if protocol.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("New = %v, want code %s and %q", err, tc.code, tc.text)
			}
		})
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("boom", tool.AtMostOnce)
		e.run = func(tool.Context, json.RawMessage) (json.RawMessage, error) { panic("kaboom") }
		f.serve(e)
		f.start("w1", worker.Config{}, e)
		for i := range 3 {
			c := f.call(e, fmt.Sprint("c", i), `{}`)
			f.publish(c)
			f.want(c, protocol.OutcomeFailed, protocol.CodeToolPanic, "")
		}
		f.wantQueue("boom", 0, 0)
	})
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func TestAWaitForAConsumerIsNewsWhenItLasts(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		var log lines
		f.start("w1", worker.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, echo("far", tool.Read))
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{900 * time.Millisecond, ""}, {4 * time.Second, "level=INFO msg=\"waiting for a coordinator"}, {10 * time.Second, "level=WARN msg=\"waiting for a coordinator"}} {
			after(c.after)
			if got := log.take(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("after %s more the log has %q, want %q", c.after, got, c.want)
			}
		}
	})
}

func TestProgressIsHeardAndLimited(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("far", tool.Read)
		e.run = func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
			for i := range 100 { // ten in each window of 100 ms
				ctx.Progress(float64(i), "on it")
				if i == 42 {
					ctx.(interface{ Asks(call, message string) }).Asks("q1", "who?")
				}
				if err := natswire.Sleep(ctx, natswire.SystemClock{}, 10*time.Millisecond); err != nil { // the bubble's time
					return nil, err
				}
			}
			return json.RawMessage(`1`), nil
		}
		var heard []protocol.Progress
		stop, err := f.bus.Subscribe(f.names.ProgressSubject("far", "s", "*"), func(m natswire.Msg) {
			var p protocol.Progress
			if err := json.Unmarshal(m.Data, &p); err != nil {
				t.Error(err)
			}
			heard = append(heard, p)
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		f.serve(e)
		f.start("w1", worker.Config{}, e)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		after(2 * time.Second)
		f.want(c, protocol.OutcomeCompleted, "", `{"result":1}`)
		if len(heard) != 11 {
			t.Fatalf("%d words of progress in a second, want 10 and the question", len(heard))
		}
		if p := heard[5]; p.Asks != "q1" || p.Message != "who?" {
			t.Errorf("the question is %+v", p)
		}
		if p := heard[10]; p.Worker != "w1" || p.Attempt != 1 || p.Percent != 92 || p.Message != "on it" {
			t.Errorf("the last word is %+v", p)
		}
	})
}
