package cli

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

// printer shows a run as it goes: the answer on stdout, what its calls do on stderr.
type printer struct {
	a      *app
	stream bool   // write the answer as it comes
	json   bool   // write ADK's events, one a line
	single bool   // a client's call: its refusal is the command's own error
	stored bool   // the input is the broker's: the run goes on without us
	wait   bool   // go on also while the run waits for somebody outside
	asker  *asker // who asks the person here; nil when nobody sits here

	log    []client.Entry  // of the run, for ADK's events
	shown  int             // events written
	spoken string          // text of the open turn that is on stdout
	broken bool            // a line of talk came after it
	early  []*client.Token // of a turn that began before the last answers of its calls came
	epoch  string          // adoption that speaks
	turns  int             // recorded turns of the run
	newest int             // highest number of a turn that tokens came from
	ended  int             // newest when the last turn was recorded: its tokens come too late
	calls  map[string]*running
	reply  func(confirmation string) string // the subject to decide on; nil before follow
	parked *client.Waiting                  // what the run waits for
	rests  bool                             // it does so now
	last   string                           // last progress line, so that none is written twice
}

// running is a call whose answer is awaited.
type running struct {
	call   protocol.Call
	since  time.Time
	told   time.Time     // when a line was last written about it
	pause  time.Duration // until the next line that it still runs
	worker string        // that told of its progress; empty is unknown
	asks   string        // call that asks people what this one waits for
}

func newPrinter(a *app) *printer {
	p := &printer{a: a, calls: map[string]*running{}}
	if a.ask && a.set.Output != "json" {
		p.asker = &asker{p: p}
	}
	return p
}

// follow shows the run that takes up an input until it has ended. Lost connections are waited out. ask yields the run's updates;
// with one that still has to send the input, it says when it is stored.
func (p *printer) follow(ctx context.Context, c *client.Client, r client.Receipt, ask func(ctx context.Context, stored func(client.Receipt)) iter.Seq2[client.Update, error]) (client.Outcome, error) {
	type update struct {
		client.Update
		stored bool
		err    error
	}
	p.reply = c.Reply(r.App, r.Session)
	updates := make(chan update)
	var reading sync.WaitGroup
	defer reading.Wait()
	reader, stop := context.WithCancel(ctx)
	defer stop()
	tell := func(u update) bool {
		select {
		case updates <- u:
			return true
		case <-reader.Done():
			return false
		}
	}
	reading.Go(func() {
		defer close(updates)
		for u, err := range ask(reader, func(client.Receipt) { tell(update{stored: true}) }) {
			if !tell(update{Update: u, err: err}) {
				return
			}
		}
	})
	var tick <-chan time.Time // only a person wants to hear that nothing happens
	if p.a.err.TTY {
		ticker := time.NewTicker(stillEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	lost := false
	for {
		var typed chan string
		if p.asker != nil {
			typed = p.asker.lines
		}
		select {
		case line, ok := <-typed:
			later := !ok
			if ok {
				var err error
				if later, err = p.asker.answer(ctx, c, line); err != nil {
					return client.Outcome{}, err
				}
			}
			if !ok && (p.wait || p.asker.open == nil) {
				p.asker = nil
				continue
			}
			if later {
				p.waits(p.parked)
				return p.parked.Outcome(r.App, r.Session, r.InputID), nil
			}
		case now := <-tick:
			if !lost {
				p.still(ctx, c, now)
			}
		case u, ok := <-updates:
			switch {
			case !ok:
				return client.Outcome{}, protocol.ContextError(ctx)
			case u.stored:
				p.stored = true
				p.a.say("%s", p.a.err.Paint(term.Dim, "session "+r.Session))
				continue
			case protocol.CodeOf(u.err) == protocol.CodeUnreachable && p.stored:
				if !lost {
					p.talk("connection lost; the run goes on without us, trying again")
				}
				lost = true
				continue
			case u.err != nil:
				return client.Outcome{}, u.err
			case u.Outcome != nil:
				return *u.Outcome, nil
			case u.Waiting != nil:
				p.parked, p.rests = u.Waiting, true
				if p.asker != nil && p.asker.begin(ctx, u.Waiting) {
					continue
				}
				if p.asker == nil {
					p.waits(u.Waiting)
				}
				if p.wait || p.asker != nil {
					continue
				}
				return u.Waiting.Outcome(r.App, r.Session, r.InputID), nil
			}
			if err := p.show(u.Update); err != nil {
				return client.Outcome{}, err
			}
			lost = false
		}
	}
}

func (p *printer) show(u client.Update) error {
	switch {
	case u.Entry != nil:
		return p.entry(*u.Entry)
	case u.Token != nil:
		return p.token(u.Token)
	case u.Progress != nil:
		p.progress(u.Progress)
	case u.Done != nil:
		p.answered(u.Done.Call, u.Done.Result)
		return p.release()
	}
	return nil
}

// token writes a piece of an answer. It belongs to the next turn to be recorded, else it comes too late. A turn begins when
// the calls before it are answered: what comes before word of that is kept until then.
func (p *printer) token(t *client.Token) error {
	if !p.stream || t.Text == "" || t.Turn <= max(p.turns, p.ended) {
		return nil
	}
	if len(p.calls) > 0 {
		p.early = append(p.early, t)
		return nil
	}
	p.newest = max(p.newest, t.Turn)
	if t.Epoch != p.epoch && p.spoken != "" {
		if err := p.closeLine(); err != nil { // another coordinator took over and asks again
			return err
		}
		p.spoken = ""
	}
	p.epoch, p.broken = t.Epoch, false
	p.spoken += t.Text
	return p.write(p.a.out.Text(t.Text))
}

// release writes the tokens that came before the answers, when all of these are told.
func (p *printer) release() error {
	if len(p.calls) > 0 {
		return nil
	}
	early := p.early
	p.early = nil
	for _, t := range early {
		if err := p.token(t); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) write(text string) error {
	_, err := fmt.Fprint(p.a.out, text)
	return err
}

// closeLine ends the line of the open text, unless talk has done it.
func (p *printer) closeLine() error {
	if p.spoken == "" || p.broken {
		return nil
	}
	return p.write("\n")
}

// talk writes a line to stderr, below what is open on stdout when a person sees both.
func (p *printer) talk(format string, args ...any) {
	if p.a.out.TTY && !strings.HasSuffix(p.spoken, "\n") {
		_ = p.closeLine()
		p.broken = p.spoken != ""
	}
	p.a.say(format, args...)
}

func (p *printer) entry(e client.Entry) error {
	p.log, p.rests = append(p.log, e), false
	if p.json {
		events := client.Events(p.log, p.reply)
		for ; p.shown < len(events); p.shown++ {
			if err := p.a.printLine(map[string]any{"event": events[p.shown]}); err != nil {
				return err
			}
		}
	}
	for i := range e.Event.Inputs {
		p.decidedElsewhere(&e.Event.Inputs[i])
	}
	for _, answer := range e.Event.Answers {
		p.answered(answer.Call, answer.Result)
	}
	if err := p.release(); err != nil || e.Event.Turn == nil {
		return err
	}
	if len(e.Event.Turn.Content) == 0 && e.Event.Turn.Agent != "" {
		return nil // what callbacks set at the run's beginning: nobody spoke
	}
	p.turns++
	p.ended = p.newest
	if err := p.reconcile(client.TurnText(e.Event.Turn)); err != nil {
		return err
	}
	for _, call := range e.Event.Turn.Calls {
		p.asked(call, time.UnixMilli(e.Event.At))
	}
	return nil
}

// reconcile makes what stdout shows of the turn end as the recorded text, and writes nothing of it twice.
func (p *printer) reconcile(text string) error {
	defer func() { p.spoken, p.broken, p.early = "", false, nil }()
	if !p.stream || text == "" && p.spoken == "" {
		return nil
	}
	rest, ok := strings.CutPrefix(text, p.spoken)
	if !ok {
		if err := p.closeLine(); err != nil {
			return err
		}
		rest = text
	}
	if rest == "" && p.broken {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		rest += "\n"
	}
	return p.write(p.a.out.Text(rest))
}

func (p *printer) asked(call protocol.Call, at time.Time) {
	if call.Refusal != nil {
		if p.single {
			return
		}
		p.talk("%s %s refused: %s", p.a.err.Paint(term.Yellow, "!"), term.EscapeLine(call.Tool), p.a.err.Text(errorText(call.Refusal.Value)))
		return
	}
	if call.Answer == nil { // else it has ended, and did nothing outside the session
		p.calls[call.ID] = &running{call: call, since: at, told: time.Now(), pause: stillFirst}
	}
	by := ""
	if call.Answer != nil && call.Tool != llmagent.TransferTool && call.Tool != exitlooptool.Name {
		by = " (answered by a callback)"
	}
	p.talk("%s %s %s%s", p.a.err.Paint(term.Cyan, ">"), term.EscapeLine(call.Tool), p.a.err.Paint(term.Dim, oneLine(call.Args, 100)), by)
}

// answered tells a call's end once, by whichever word of it comes first.
func (p *printer) answered(call string, r protocol.Result) {
	open := p.calls[call]
	if open == nil || r.Outcome == protocol.OutcomeAsks {
		return // what waits is told of when the run parks
	}
	if r.Outcome == protocol.OutcomePending {
		if len(r.Value) > 0 {
			p.talk("%s %s so far %s", p.a.err.Paint(term.Dim, "…"), term.EscapeLine(open.call.Tool), oneLine(bare(r.Value), 100))
		}
		return
	}
	delete(p.calls, call)
	var notes []string
	if r.Started > 0 && r.Ended >= r.Started {
		notes = append(notes, span(time.Duration(r.Ended-r.Started)*time.Millisecond))
	}
	if r.Worker != "" && r.Attempt > 0 { // without an attempt it is a coordinator's word
		notes = append(notes, "by "+term.EscapeLine(short(r.Worker)))
	}
	if r.Attempt > 1 {
		notes = append(notes, fmt.Sprintf("attempt %d", r.Attempt))
	}
	note := p.a.err.Paint(term.Dim, strings.Join(notes, ", "))
	if r.Outcome == protocol.OutcomeCompleted {
		p.talk("%s %s %s %s", p.a.err.Paint(term.Green, "<"), term.EscapeLine(open.call.Tool), oneLine(bare(r.Value), 100), note)
		return
	}
	p.talk("%s %s %s: %s %s", p.a.err.Paint(term.Red, "<"), term.EscapeLine(open.call.Tool), term.EscapeLine(string(r.Outcome)), term.EscapeLine(term.Clip(errorText(r.Value), 200)), note)
}

func (p *printer) progress(u *client.Progress) {
	open := p.calls[u.Call]
	if open == nil {
		return
	}
	if u.Asks != "" {
		p.asks(open, u)
		return
	}
	if !p.a.err.TTY {
		return
	}
	open.worker = u.Worker
	line := term.EscapeLine(open.call.Tool)
	if u.Percent > 0 {
		line += fmt.Sprintf(" %.0f%%", u.Percent)
	}
	if u.Message != "" {
		line += " " + term.EscapeLine(term.Clip(u.Message, 100))
	}
	if line == p.last {
		return
	}
	p.last, open.told = line, time.Now()
	p.talk("%s %s %s", p.a.err.Paint(term.Dim, "…"), line, p.a.err.Paint(term.Dim, span(time.Since(open.since))))
}
