package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// Tour is what was shown.
type Tour struct {
	OK        bool           `json:"ok"` // all checks are
	Agent     string         `json:"agent"`
	Session   string         `json:"session"`
	Dir       string         `json:"dir"` // of the files
	Question  string         `json:"question"`
	Answer    string         `json:"answer"`
	Files     []File         `json:"files"`
	Processes []Process      `json:"processes"`
	Parallel  Parallel       `json:"parallel"`
	Killed    Killed         `json:"killed"`
	Waited    Waited         `json:"waited"`
	Calls     []Call         `json:"calls"`
	Effects   []Effect       `json:"effects"`
	Checks    []Check        `json:"checks"`
	Millis    int64          `json:"ms"`
	Trace     []*client.Span `json:"trace"`
}

// Parallel is what ran at the moment of the kill.
type Parallel struct {
	Calls   int `json:"calls"`
	Workers int `json:"workers"`
}

// Killed is the worker that was killed, and the calls it was running.
type Killed struct {
	Process
	Calls []string `json:"calls"`
}

// Call is a call of the session and how it ended.
type Call struct {
	ID      string           `json:"id"`
	Tool    string           `json:"tool"`
	Args    json.RawMessage  `json:"args"`
	Turn    int              `json:"turn"` // from 1
	Outcome protocol.Outcome `json:"outcome,omitempty"`
	Worker  string           `json:"worker,omitempty"`
	Attempt int              `json:"attempt,omitempty"`
}

// Check is something the tour claims.
type Check struct {
	Claim string `json:"claim"`
	OK    bool   `json:"ok"`
	Found string `json:"found,omitempty"` // what differs
}

// collect reads what the session's log, the trace and the ledger hold.
func (t *Tour) collect(ctx context.Context, c *client.Client, l ledger) error {
	log, err := c.Log(ctx, Agent, t.Session, 0)
	if err != nil {
		return err
	}
	turns, at := 0, map[string]int{}
	for _, e := range log {
		for _, in := range e.Event.Inputs {
			if d := in.Decision; d != nil && d.Confirmed {
				t.Waited.Approver = in.Client
			}
		}
		if a := e.Event.Adopt; a != nil && turns > 0 {
			t.Waited.Drivers = append(t.Waited.Drivers, a.Coordinator)
		}
		for _, a := range e.Event.Answers {
			i, ok := at[a.Call]
			switch {
			case !ok:
			case a.Round > 0 && a.Call == t.Waited.Print: // the worker's word on it is its first
				t.Calls[i].Outcome, t.Waited.From = a.Outcome, a.Worker
			default:
				t.Calls[i].Outcome, t.Calls[i].Worker, t.Calls[i].Attempt = a.Outcome, a.Worker, a.Attempt
			}
		}
		if e.Event.Turn == nil {
			continue
		}
		turns++
		for _, call := range e.Event.Turn.Calls {
			at[call.ID] = len(t.Calls)
			t.Calls = append(t.Calls, Call{ID: call.ID, Tool: call.Tool, Args: call.Args, Turn: turns})
		}
	}
	if t.Effects, err = l.read(); err != nil {
		return err
	}
	t.Trace, err = c.Trace(ctx, Agent, t.Session)
	return err
}

// check compares what was shown with what must hold.
func (t *Tour) check() {
	claims := []struct {
		claim string
		found string // empty when the claim holds
	}{
		{"the answer is what this process computes from the files", t.checkAnswer()},
		{fmt.Sprintf("%d calls of one turn ran at once in two worker processes", asked), t.checkParallel()},
		{"the calls of the killed worker were run again, by the other one", t.checkKilled()},
		{"each call ended once, and each effect happened once", t.checkEffects()},
		{"nothing was published before somebody agreed, and it was then, though another coordinator drove the session by that time", t.checkDecision()},
		{"the print's result came from outside, once, and the agent knew of it", t.checkOutside()},
		{"the trace has the tools' spans from both sides", t.checkTrace()},
	}
	t.OK = true
	for _, c := range claims {
		t.Checks = append(t.Checks, Check{Claim: c.claim, OK: c.found == "", Found: c.found})
		t.OK = t.OK && c.found == ""
	}
}

func (t *Tour) checkAnswer() string {
	if t.Answer == rightAnswer(t.Files) {
		return ""
	}
	for _, f := range t.Files {
		if now, err := look(t.Dir, f.Path); err != nil || now != f {
			return f.Path + " changed while the tour ran; make it again"
		}
	}
	return "right would be:\n" + rightAnswer(t.Files)
}

func (t *Tour) checkParallel() string {
	if t.Parallel.Calls >= asked && t.Parallel.Workers == len(workers) {
		return ""
	}
	return fmt.Sprintf("%d calls in %d workers", t.Parallel.Calls, t.Parallel.Workers)
}

func (t *Tour) checkKilled() string {
	lost := 0
	for _, c := range t.Calls {
		if !slices.Contains(t.Killed.Calls, c.ID) {
			continue
		}
		lost++
		if c.Worker == t.Killed.Name || c.Attempt < 2 {
			return fmt.Sprintf("call %s ended on %s at attempt %d", c.ID, c.Worker, c.Attempt)
		}
	}
	if lost == 0 {
		return "no worker was killed in the middle of a call"
	}
	return ""
}

func (t *Tour) checkEffects() string {
	times := map[string]int{}
	for _, e := range t.Effects {
		times[e.Key]++
	}
	for _, c := range t.Calls {
		if c.Outcome != protocol.OutcomeCompleted {
			return fmt.Sprintf("call %s of %s ended as %q", c.ID, c.Tool, c.Outcome)
		}
		want := 1
		if c.Tool == toolCount || c.Tool == toolChecksum {
			want = 0
		}
		if times[c.ID] != want {
			return fmt.Sprintf("call %s of %s had %d effects", c.ID, c.Tool, times[c.ID])
		}
	}
	if len(t.Calls) != 3*asked+2 || len(t.Effects) != asked+2 {
		return fmt.Sprintf("%d calls and %d effects", len(t.Calls), len(t.Effects))
	}
	return ""
}

func (t *Tour) checkDecision() string {
	w := &t.Waited
	switch {
	case len(w.Early) > 0:
		return fmt.Sprintf("%d effects before the approval", len(w.Early))
	case w.Approver != approver:
		return fmt.Sprintf("the log names %q as approver", w.Approver)
	case w.Old.PID == 0 || w.Old.PID == w.New.PID || len(w.Drivers) < 2 || w.Drivers[0] == w.Drivers[1]:
		return fmt.Sprintf("coordinators with pids %d and %d drove it as %q", w.Old.PID, w.New.PID, w.Drivers)
	case w.Published != rightPublished(w.Line):
		return fmt.Sprintf("%q; right would be %q", w.Published, rightPublished(w.Line))
	}
	return ""
}

func (t *Tour) checkOutside() string {
	w := &t.Waited
	switch {
	case w.From == "" || slices.Contains(workers, w.From):
		return fmt.Sprintf("the result of call %s is from %q", w.Print, w.From)
	case w.Second != protocol.CodeAnswered:
		return fmt.Sprintf("a second result was answered with %q", w.Second)
	case w.Printed != rightPrinted(w.Sheets):
		return fmt.Sprintf("%q; right would be %q", w.Printed, rightPrinted(w.Sheets))
	}
	return ""
}

func (t *Tour) checkTrace() string {
	asked, ran := 0, 0
	var walk func(spans []*client.Span)
	walk = func(spans []*client.Span) {
		for _, s := range spans {
			if strings.HasPrefix(s.Name, "execute_tool ") {
				if slices.Contains(workers, s.Process) {
					ran++
				} else {
					asked++
				}
			}
			walk(s.Children)
		}
	}
	walk(t.Trace)
	if ran == len(t.Calls) && asked == len(t.Calls) {
		return ""
	}
	return fmt.Sprintf("%d spans of workers and %d of coordinators for %d calls", ran, asked, len(t.Calls))
}
