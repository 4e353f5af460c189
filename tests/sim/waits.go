package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// standing is where a call stands by its log, worked out apart from the code that is judged.
type standing struct {
	*asked
	client    bool // a client made it
	stages    []stage
	asks      *protocol.Confirmation // the open question
	agreed    []string               // who said yes to it
	since     int64                  // At of the event that began the wait
	cancelled bool                   // somebody asked for its end
	told      bool                   // the model was told of it and goes on
	ended     bool
	by        entry // the event that ended it
}

// stage is one round of a call.
type stage struct {
	sent    int // place of the event that allows it to be sent; -1 is never
	at      int64
	args    json.RawMessage
	gated   bool // people had a say
	given   *protocol.FoldedDecision
	outside bool // its result comes from outside
}

func (s *standing) round() int    { return len(s.stages) - 1 }
func (s *standing) now() *stage   { return &s.stages[len(s.stages)-1] }
func (s *standing) waits() bool   { return s.asks != nil || s.now().outside }
func (s *standing) holdsUp() bool { return !s.ended && !s.told }
func (s *standing) session() string {
	_, session, _ := strings.Cut(s.journal.name, ".")
	return session
}

// effect is the class that the call has in a round.
func (s *standing) effect(round int) protocol.Effect {
	if round < len(s.stages) && s.stages[round].given != nil || s.Effect == "" {
		return protocol.EffectAtMostOnce
	}
	return s.Effect
}

// until is when the open wait ends by itself.
func (s *standing) until() int64 {
	switch {
	case s.asks != nil:
		return s.asks.Expires
	case s.now().outside:
		return s.since + s.Park
	}
	return s.now().at + s.Budget
}

// mailbox is where the answer of a round is.
func (c *checker) mailbox(s *standing, round int) string {
	app, session, _ := strings.Cut(s.journal.name, ".")
	if s.AnswersTo == protocol.MailboxWake || round > 0 || round < len(s.stages) && s.stages[round].given != nil {
		return c.h.Names.WakeSubject(app, s.Tool, session, s.ID, round)
	}
	return c.h.Names.ResultSubject(s.Tool, session, s.ID, round)
}

// reading is a log on its way through waits.
type reading struct {
	c         *checker
	j         *journal
	user      string
	calls     []*standing          // in the order of their turns
	questions map[string]*standing // by confirmation, also those that were decided
	news      []*standing          // calls of ended turns whose final answer came
}

// waits reads each log for what its calls wait for, and judges each step: I9, I10, I16, I17 and I18.
func (c *checker) waits() {
	for _, j := range c.journals() {
		r := &reading{c: c, j: j, questions: map[string]*standing{}}
		for _, ev := range j.events {
			r.read(ev)
		}
		c.readings[j.name] = r
	}
}

func (r *reading) read(ev entry) {
	denied := map[string]bool{}
	for _, in := range ev.Inputs {
		if in.Refused != nil {
			continue
		}
		switch in.Kind {
		case protocol.InputDecision:
			r.decision(ev, in, denied)
		case protocol.InputCancel:
			for _, s := range r.calls {
				if !s.ended && (in.Target == s.ID || in.Target == "" && !s.told) {
					s.cancelled = true
				}
			}
		default:
			if r.user == "" {
				r.user = in.Client
			}
		}
	}
	for _, a := range ev.Answers {
		r.answer(ev, a, denied)
	}
	for id := range denied {
		r.c.add("I17", "log %s: event %d folds the denial of call %s, which goes on", r.j.name, ev.seq, id)
	}
	if ev.Turn != nil {
		r.turn(ev)
	}
	if ev.Stop != nil && ev.Stop.Kind == protocol.StopParked && len(r.open()) == 0 {
		r.c.add("I16", "log %s: event %d parks a session without a call that waits", r.j.name, ev.seq)
	}
}

// open is the calls that hold up their turn.
func (r *reading) open() []*standing {
	return slices.DeleteFunc(slices.Clone(r.calls), func(s *standing) bool { return !s.holdsUp() })
}

func (r *reading) turn(ev entry) {
	for _, s := range r.open() {
		r.c.add("I10", "log %s: event %d is a turn while call %s of an earlier one is open", r.j.name, ev.seq, s.ID)
	}
	for i := range ev.Turn.Calls {
		call := r.c.calls[ev.Turn.Calls[i].ID]
		if call == nil || call.at != ev.at {
			continue
		}
		s := &standing{asked: call, client: len(ev.Turn.Content) == 0, since: ev.At, ended: call.Recorded() != nil, by: ev}
		first := stage{sent: -1, at: ev.At, args: call.Args}
		switch call.Verdict {
		case protocol.VerdictRun:
			first.sent = ev.at
		case protocol.VerdictAsk:
			first.gated = true
			r.ask(ev, s, call.Confirmation, call.Args)
		}
		s.stages = []stage{first}
		r.calls = append(r.calls, s)
		r.c.standings[s.ID] = s
	}
}

// ask begins a question about a call with args.
func (r *reading) ask(ev entry, s *standing, q *protocol.Confirmation, args json.RawMessage) {
	if q == nil {
		r.c.add("I17", "log %s: event %d asks about call %s without a confirmation", r.j.name, ev.seq, s.ID)
		return
	}
	if r.questions[q.ID] != nil {
		r.c.add("I18", "log %s: event %d asks under the id %s, which was used", r.j.name, ev.seq, q.ID)
	}
	if q.Digest != protocol.ConfirmationDigest(s.session(), &s.Call, args, q.Expires, q.ID) {
		r.c.add("I17", "log %s: event %d asks under %s with the digest of something else", r.j.name, ev.seq, q.ID)
	}
	s.asks, s.agreed, s.since = q, nil, ev.At
	r.questions[q.ID] = s
}

// decision wants a decision to be of an open question, in time, by somebody who may decide and has not yet.
func (r *reading) decision(ev entry, in protocol.FoldedInput, denied map[string]bool) {
	d := in.Decision
	s := r.questions[d.Confirmation]
	if s == nil || s.ended || s.asks == nil || s.asks.ID != d.Confirmation {
		r.c.add("I18", "log %s: event %d folds a decision on %s, which is not open", r.j.name, ev.seq, d.Confirmation)
		return
	}
	if why := r.void(s.asks, s.agreed, in); why != "" {
		r.c.add("I17", "log %s: event %d folds a decision on %s %s", r.j.name, ev.seq, d.Confirmation, why)
	}
	if s.cancelled {
		r.c.add("I14", "log %s: event %d folds a decision on %s after its call was cancelled", r.j.name, ev.seq, d.Confirmation)
	}
	app, session, _ := strings.Cut(r.j.name, ".")
	at, ok := r.c.stored[place(r.c.h.Names.Approval(), in.Seq)]
	if !ok || at > ev.at || r.c.h.Records[at].Subject != r.c.h.Names.ApprovalSubject(app, session, d.Confirmation, in.Client) {
		r.c.add("I17", "log %s: event %d folds a decision on %s that nobody published", r.j.name, ev.seq, d.Confirmation)
	} else if said, err := protocol.DecodeDecision(r.c.h.Records[at].Data, d.Confirmation); err != nil || said.Confirmed != d.Confirmed || (len(said.Args) > 0) != (len(d.Args) > 0) {
		r.c.add("I17", "log %s: event %d folds another decision on %s than was published", r.j.name, ev.seq, d.Confirmation)
	}
	q, now := s.asks, s.now()
	now.gated = true
	switch {
	case !d.Confirmed && !q.ToolDecides:
		denied[s.ID] = true
		return
	case d.Confirmed && d.Asks != nil:
		now.args = d.Args
		r.ask(ev, s, d.Asks, d.Args)
		return
	case d.Confirmed:
		if s.agreed = append(s.agreed, in.Client); len(s.agreed) < q.Quorum() {
			return
		}
	}
	s.asks, s.agreed, now.given, now.sent, now.at = nil, nil, d, ev.at, ev.At
}

// void says why a decision does not count.
func (r *reading) void(q *protocol.Confirmation, agreed []string, in protocol.FoldedInput) string {
	switch d := in.Decision; {
	case in.Sent > q.Expires:
		return "after it had expired"
	case d.Digest != "" && d.Digest != q.Digest:
		return "with another digest"
	case q.NotRequester && in.Client == r.user:
		return "by its requester"
	case slices.Contains(agreed, in.Client):
		return "by an approver who agreed before"
	}
	return ""
}

func (r *reading) answer(ev entry, a protocol.Answer, denied map[string]bool) {
	s := r.c.standings[a.Call]
	switch {
	case s == nil || s.journal != r.j:
		r.c.add("I10", "log %s: event %d answers call %s that no earlier turn asks for", r.j.name, ev.seq, a.Call)
		return
	case s.ended:
		r.c.add("I10", "log %s: call %s is answered by events %d and %d", r.j.name, a.Call, s.by.seq, ev.seq)
		return
	case a.Round != s.round():
		r.c.add("I10", "log %s: event %d answers round %d of call %s, which is in round %d", r.j.name, ev.seq, a.Round, a.Call, s.round())
		return
	}
	no := denied[a.Call]
	delete(denied, a.Call)
	if no && a.Outcome != protocol.OutcomeDenied {
		r.c.add("I17", "log %s: event %d folds the denial of call %s and ends it as %s", r.j.name, ev.seq, a.Call, a.Outcome)
	}
	r.c.first(r.j, ev, s, a)
	if s.asks != nil && !no {
		r.unasked(ev, s, a)
	}
	switch a.Outcome {
	case protocol.OutcomeAsks:
		s.stages = append(s.stages, stage{sent: -1, at: ev.At, args: s.now().args, gated: true})
		s.told = false
		r.ask(ev, s, a.Confirmation, s.now().args)
	case protocol.OutcomePending:
		s.told = s.told || len(a.Value) > 0 && !s.client
		s.stages = append(s.stages, stage{sent: -1, at: ev.At, args: s.now().args, outside: true})
		s.asks, s.since = nil, ev.At
	default:
		if s.told && a.Code != protocol.CodeExpired && a.Code != protocol.CodeCancelled {
			r.news = append(r.news, s)
		}
		s.ended, s.by, s.asks = true, ev, nil
	}
}

// unasked wants a call whose question is open to end by cancel, or by a deadline that nobody's word beat.
func (r *reading) unasked(ev entry, s *standing, a protocol.Answer) {
	switch a.Outcome {
	case protocol.OutcomeCancelled:
		return
	case protocol.OutcomeExpired:
	default:
		r.c.add("I17", "log %s: event %d ends call %s as %s while people are asked about it", r.j.name, ev.seq, a.Call, a.Outcome)
		return
	}
	q := s.asks
	if ev.At < q.Expires {
		r.c.add("I16", "log %s: event %d ends call %s as expired before its time", r.j.name, ev.seq, a.Call)
	}
	agreed := slices.Clone(s.agreed)
	for _, at := range r.c.decisions[q.ID] {
		rec := r.c.h.Records[at]
		app, session, _, approver, _ := r.c.h.Names.ParseApproval(rec.Subject)
		d, err := protocol.DecodeDecision(rec.Data, q.ID)
		if err != nil || app+"."+session != r.j.name || at > ev.at || rec.Time.UnixMilli() > q.Expires || len(d.Args) > 0 || r.j.foldsSeq(rec.Seq) {
			continue
		}
		in := protocol.FoldedInput{Client: approver, Sent: rec.Time.UnixMilli(), Decision: &protocol.FoldedDecision{Confirmation: q.ID, Decision: d}}
		if r.void(q, agreed, in) == "" {
			r.c.add("I16", "log %s: event %d ends call %s as expired, though decision %d was stored in time", r.j.name, ev.seq, a.Call, rec.Seq)
		}
	}
}

// foldsSeq reports whether the log holds the decision that is stored at a sequence of APPROVAL.
func (j *journal) foldsSeq(seq uint64) bool {
	return slices.ContainsFunc(j.events, func(ev entry) bool {
		return slices.ContainsFunc(ev.Inputs, func(in protocol.FoldedInput) bool { return in.Kind == protocol.InputDecision && in.Seq == seq })
	})
}
