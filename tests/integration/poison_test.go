package integration

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// Environment variables of the child process: doomedServer makes the test binary a worker whose tool crashy kills its
// process, and names the server; doomedEffect is the effect class of crashy.
const (
	doomedServer = "TOOLFABRIC_TEST_DOOMED"
	doomedEffect = "TOOLFABRIC_TEST_EFFECT"
	doomedID     = "TOOLFABRIC_TEST_ID"
)

// runDoomed is the whole of the child process.
func runDoomed(server string) {
	crashy := &stub{name: "crashy", settings: doomedSettings(tool.Effect(os.Getenv(doomedEffect))),
		do: func(_ tool.Context, args json.RawMessage) (json.RawMessage, error) {
			if strings.Contains(string(args), "spare") {
				return json.RawMessage(`{"ok":1}`), nil
			}
			_, _ = os.Stderr.WriteString("began\n")
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				_ = self.Kill()
			}
			select {} // the signal is on its way
		}}
	conn, err := natswire.Connect(context.Background(), natswire.Config{URL: server})
	if err != nil {
		os.Exit(3)
	}
	w, err := worker.New(worker.Config{Bus: conn, Names: conn.Names(), Tools: []tool.Tool{crashy}, ID: os.Getenv(doomedID), Slots: 1})
	if err != nil {
		os.Exit(3)
	}
	_ = w.Run(context.Background())
}

func doomedSettings(effect tool.Effect) tool.Settings {
	s := tool.Settings{Effect: effect}
	if effect == tool.AtMostOnce { // its call ends by deadline
		s.Timeout = 4 * time.Second
	}
	return s
}

// doomed is a worker process that is started again whenever it died, until the test stops it.
type doomed struct {
	began atomic.Int32 // runs of crashy
	stop  func()
}

func (f *fabric) doom(effect tool.Effect) *doomed {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	d := &doomed{}
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			child := exec.CommandContext(ctx, self)
			child.Env = append(os.Environ(), doomedServer+"="+f.server.URL(), doomedEffect+"="+string(effect), doomedID+"=doomed")
			var said strings.Builder
			child.Stderr = &said
			err := child.Run()
			d.began.Add(int32(strings.Count(said.String(), "began")))
			if ctx.Err() == nil && !strings.Contains(said.String(), "began") {
				f.t.Errorf("the doomed worker ended without having been killed by its tool: %v: %s", err, &said)
				return
			}
		}
	}()
	d.stop = func() { cancel(); <-ended }
	f.t.Cleanup(d.stop)
	return d
}

func TestCallThatKillsItsWorkersIsGivenUp(t *testing.T) { // h20
	t.Parallel()
	f := newFabric(t)
	f.lease = time.Second
	p := provide(t, hand(t, "h20-poison-call/model.json"), nil)
	f.coordinate(newAgent(t, "h20", p.llm, "crashy", "fine"))
	fine := answering("fine", `{"ok":1}`, tool.AtMostOnce)
	f.work(fine)
	d := f.doom(tool.Idempotent)
	f.eventually("pool of crashy", func() bool { _, err := f.call("crashy", `{"spare":true}`); return err == nil })

	r := f.send(t.Context(), "h20", "", "go")
	id := f.untilTurn("h20", r.Session).Calls[0].ID
	spared, err := f.call("crashy", `{"spare":true}`) // others are not blocked meanwhile
	if err != nil || spared.Outcome != protocol.OutcomeCompleted {
		t.Errorf("another call to crashy ended with %+v, %v", spared, err)
	}
	out := f.wait(r)
	d.stop()
	contains(t, "the answer", out.Text, "end")
	if n := d.began.Load(); n < 2 || n > 5 {
		t.Errorf("the call was begun %d times, want a few, bounded by 5", n)
	}
	fine.wantRuns(t, 1)
	p.wantCount(2)
	text, _ := p.response(2, 0)["error"].(string)
	contains(t, "the response of crashy", text, "worker died")
	wantJSON(t, "the response of fine", mustString(t, p.response(2, 1)), `{"ok":1}`)
	if a := firstAnswer(f.log("h20", r.Session), 0); a.Code != protocol.CodePoison || a.Outcome != protocol.OutcomeFailed {
		t.Errorf("the call ended as %s with code %s, want failed and poison", a.Outcome, a.Code)
	}
	letters := f.deadLetters("call", func(l protocol.DeadLetter) bool { return l.Call == id })
	if l := letters[0]; len(letters) != 1 || l.Tool != "crashy" || l.Session != r.Session || l.App != "h20" || l.Code != protocol.CodePoison || len(l.Data) == 0 {
		t.Errorf("dead letters: %+v", letters)
	}
	f.eventually("queue without the call", func() bool { return !f.holds("crashy", id) })
}

func TestCallThatKilledItsWorkerIsNotRepeatedWhenItMayNotBe(t *testing.T) { // h20 for the default effect class
	t.Parallel()
	f := newFabric(t)
	f.lease = time.Second
	p := provide(t, hand(t, "h20-poison-call/model.json"), nil)
	f.coordinate(newAgent(t, "h20", p.llm, "crashy", "fine"))
	fine := answering("fine", `{"ok":1}`, tool.AtMostOnce)
	f.work(fine)
	d := f.doom(tool.AtMostOnce)
	f.eventually("pool of crashy", func() bool { _, err := f.call("crashy", `{"spare":true}`); return err == nil })
	out := f.ask("h20", "", "go")
	d.stop()
	contains(t, "the answer", out.Text, "end")
	if n := d.began.Load(); n != 1 {
		t.Errorf("the call was begun %d times, want once", n)
	}
	fine.wantRuns(t, 1)
	if a := firstAnswer(f.log("h20", out.Session), 0); a.Outcome != protocol.OutcomeUnknown {
		t.Errorf("the call ended as %s, want outcome_unknown", a.Outcome)
	}
	p.wantCount(2)
	text, _ := p.response(2, 0)["error"].(string)
	contains(t, "the response of crashy", text, "unknown")
	f.eventually("queue without the call", func() bool { return !f.holds("crashy", turns(f.log("h20", out.Session))[0].Calls[0].ID) })
}
