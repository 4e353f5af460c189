package coordinator

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// thought is a model's answer, judged, on its way to the loop.
type thought struct {
	turn turn.Decision
	err  error
	of   int // the request it answers; an older one is nobody's
}

// think asks the model for the next turn, or ends a run that has used up what it may.
func (s *session) think(ctx context.Context) error {
	if err := s.fit(ctx); err != nil {
		return err
	}
	a := s.speaker()
	if a == nil {
		return s.step(ctx, fold.Failed{Problem: protocol.Problem{Code: protocol.CodeUnknownApp, Message: "no agent named " + s.key.app + " is served here"}})
	}
	if p := s.exceeded(a); p != nil {
		return s.step(ctx, fold.Failed{Problem: *p})
	}
	if s.state.SnapshotDue() {
		if err := s.step(ctx, fold.Snapshot{}); err != nil {
			return err
		}
	}
	h := s.hooks(a.Name())
	if !s.drive.prepared && (s.enters(a, h) || len(s.unlistedSets(a)) > 0) {
		return s.prepareRun(ctx, a, h)
	}
	began := s.c.cfg.Clock.Now()
	history, err := s.history(ctx)
	if err != nil {
		return err
	}
	names, own, shapers := s.tools(a, h)
	s.c.catalogue.learn(ctx, names...)
	offers := s.c.agents[s.key.app].Offers(a, s.c.catalogue.offers(names), own...)
	req, err := s.request(a, history, offers)
	if err != nil {
		return s.step(ctx, fold.Failed{Problem: *protocol.ProblemOf(err)})
	}
	if built := s.c.cfg.Listener.RequestBuilt; built != nil {
		built(s.key.app, s.key.session, s.c.cfg.Clock.Now().Sub(began))
	}
	asking, cancel := context.WithCancel(s.asking(a))
	s.drive.thinking = cancel
	s.drive.modelTurn++
	m := s.moment(a.Name(), h, history.Message(s.state.Answers()))
	q := &query{s: s, moment: m, shapers: shapers, agent: a, offers: offers, user: s.state.User, req: req, seq: history.Seq(), of: s.drive.modelTurn, number: s.state.Run.ModelCalls + 1, epoch: strconv.FormatUint(s.state.Epoch, 10), kind: s.askKind(a)}
	q.attend(asking, cancel)
	return nil
}

// asking is the context of the adoption's model requests: it ends with the run's time, as the agent that speaks limits it. An
// adoption drives one run.
func (s *session) asking(a *llmagent.LLMAgent) context.Context {
	if s.drive.asking == nil {
		left := time.Duration(s.state.Run.Began-s.c.now())*time.Millisecond + a.Config().Limits.WallTime
		overtime := overtime(a)
		s.drive.asking, s.drive.enough = context.WithTimeoutCause(s.drive.ctx, left, protocol.Errorf(overtime.Code, "%s", overtime.Message))
	}
	return s.drive.asking
}

// request is what the model is asked. Instruction providers are the agent's own code: their panic fails the run.
func (s *session) request(a *llmagent.LLMAgent, history *turn.History, offers []turn.Offer) (req *model.LLMRequest, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.c.cfg.Logger.Error("an agent panicked", "agent", a.Name(), "session", s.key.session, "panic", r, "stack", string(debug.Stack()))
			err = protocol.Errorf(protocol.CodeModelFailed, "agent %s panicked while it made its instruction", a.Name())
		}
	}()
	return history.Request(s.drive.ctx, a, turn.Run{
		App: s.key.app, User: s.state.User, Session: s.key.session, Invocation: s.state.Adoption, State: s.state.View(), Root: s.c.agents[s.key.app].Root(),
	}, offers, s.state.Answers())
}

// exceeded says which cap of the run is reached; nil for none.
func (s *session) exceeded(a *llmagent.LLMAgent) *protocol.Problem {
	limits, run := a.Config().Limits, s.state.Run
	limit := func(text string) *protocol.Problem { return &protocol.Problem{Code: protocol.CodeLimit, Message: text} }
	switch {
	case run.ModelCalls >= limits.ModelCalls && (!fault.Mutant("limit-in-memory") || s.drive.modelTurn >= limits.ModelCalls):
		return limit("the run has asked the model " + times(run.ModelCalls) + ", which is its limit; a new message starts another run")
	case s.c.now()-run.Began > limits.WallTime.Milliseconds():
		return overtime(a)
	}
	return nil
}

func overtime(a *llmagent.LLMAgent) *protocol.Problem {
	return &protocol.Problem{Code: protocol.CodeLimit,
		Message: "the run has taken longer than " + a.Config().Limits.WallTime.String() + ", which is its limit; a new message starts another run"}
}

// thought records what the model answered, with the verdicts; only then is anything of it acted on.
func (s *session) thought(ctx context.Context, item thought) error {
	if item.of != s.drive.modelTurn {
		return nil
	}
	s.drive.thinking, s.drive.prepared = nil, false
	if item.err != nil {
		return s.step(ctx, fold.Failed{Problem: *protocol.ProblemOf(item.err)})
	}
	fault.Point("K10")
	s.beginCalls(&item.turn.Turn)
	if fault.Mutant("dispatch-before-record") {
		for _, c := range item.turn.Calls {
			w := &watch{call: c, startBy: s.c.now() + c.Queue, end: s.c.now() + c.Budget}
			if msg, err := s.envelope(w, fold.Perform{Call: c}); err == nil && c.Verdict == protocol.VerdictRun {
				s.send(ctx, w, msg)
			}
		}
	}
	if len(item.turn.Calls) == 0 && fault.Mutant("guard-gone-before-stop") {
		_ = s.perform(ctx, fold.Disarm{Adoption: s.state.Adoption})
	}
	s.log.history.Expect(item.turn)
	return s.record(ctx, fold.Modelled{Turn: item.turn.Turn, Asks: s.hooks(item.turn.Agent).Leaves()})
}

// record appends a turn. One that is too large for the log fails its run: whoever adopts the session would make it again.
func (s *session) record(ctx context.Context, in fold.Input) error {
	err := s.step(ctx, in)
	if protocol.CodeOf(err) == protocol.CodeTooLarge {
		return s.step(ctx, fold.Failed{Problem: *protocol.ProblemOf(err)})
	}
	return err
}

// query is one request to a model. It runs beside the loop and touches nothing of it.
type query struct {
	s      *session
	agent  *llmagent.LLMAgent
	offers []turn.Offer
	user   string
	req    *model.LLMRequest
	seq    uint64
	of     int
	number int
	epoch  string
	kind   *telemetry.Kind // of its span
	ids    []string        // of the answer's calls, in order

	moment  *turn.Moment // nil when no code of the agent has a say
	shapers []turn.Shaper
	over    atomic.Bool
}

// attend asks until ctx ends. A model that does not notice that is left behind: it holds up neither the session nor a drain,
// and what it says later is nobody's. cancel ends ctx.
func (q *query) attend(ctx context.Context, cancel context.CancelFunc) {
	if !q.s.c.running.Enter() {
		cancel()
		return
	}
	stop := context.AfterFunc(ctx, func() { q.conclude(thought{err: protocol.ContextError(ctx), of: q.of}) })
	q.s.c.running.Lend(func() {
		defer cancel()
		t, err := q.ask(ctx)
		if err != nil && ctx.Err() != nil {
			err = protocol.ContextError(ctx)
		}
		stop()
		q.conclude(thought{turn: t, err: err, of: q.of})
	})
}

// conclude hands the loop what came of the query, once.
func (q *query) conclude(t thought) {
	if !q.over.Swap(true) {
		q.s.inbox.put(t)
		q.s.c.running.Leave()
	}
}

// ask streams the answer to whoever watches, and judges the whole of it.
func (q *query) ask(ctx context.Context) (t turn.Decision, err error) {
	llm := q.agent.Config().Model
	ctx, span := q.kind.Start(ctx, q.s.c.tracer)
	var notes []attribute.KeyValue
	defer func() {
		if r := recover(); r != nil {
			q.s.c.cfg.Logger.Error("a model panicked", "model", llm.Name(), "panic", r)
			err = protocol.Errorf(protocol.CodeModelFailed, "the adapter of model %s panicked", llm.Name())
		}
		if err != nil {
			span.SetStatus(codes.Error, string(protocol.CodeOf(err)))
			notes = append(notes, telemetry.ErrorType.String(string(protocol.CodeOf(err))))
		}
		q.kind.End(span, notes...)
	}()
	began := q.s.c.now()
	fault.Point("K9")
	final, by, err := q.answer(ctx, llm)
	if err != nil {
		return t, err
	}
	desk := q.s.c.desk(q.s.key, q.user)
	desk.Moment = q.moment
	if t, err = turn.Decide(q.agent, q.offers, desk, q.id, final); err != nil {
		return t, err
	}
	t.By = by
	t.RequestSeq, t.Started, t.Ended = q.seq, began, q.s.c.now()
	t.Span = telemetry.FormatTraceparent(span.SpanContext())
	if span.IsRecording() {
		notes = describe(t.Turn, final.ModelVersion)
	}
	return t, nil
}

// answer is the model's answer, or that of a callback in its place, with what callbacks made of it.
func (q *query) answer(ctx context.Context, llm model.LLM) (*model.LLMResponse, protocol.Speaker, error) {
	m := q.moment
	if m == nil {
		final, err := q.stream(ctx, llm)
		return final, "", err
	}
	m.Begin(ctx, room(m.Run.State))
	req, instead, err := m.Request(q.req, q.shapers)
	if err != nil || instead != nil {
		return instead, protocol.SpeakerBeforeModel, err
	}
	q.req = req
	final, err := q.stream(ctx, llm)
	if ctx.Err() != nil {
		return nil, "", protocol.ContextError(ctx)
	}
	final, err = m.Response(req, final, err)
	return final, "", err
}

func (q *query) stream(ctx context.Context, llm model.LLM) (final *model.LLMResponse, err error) {
	for resp, err := range llm.GenerateContent(ctx, q.req, true) {
		switch {
		case err != nil:
			if protocol.CodeOf(err) == protocol.CodeInternal {
				err = protocol.Wrap(err, protocol.CodeModelFailed, "model %s cannot be asked: %s", llm.Name(), clip(err.Error(), 500))
			}
			return nil, err
		case resp == nil:
		case resp.Partial && q.moment != nil && q.moment.Hooks.Withholds(): // it may become another answer
		case resp.Partial:
			fault.Point("K11")
			q.announce(ctx, resp.Content)
		default:
			final = resp
		}
	}
	if final == nil {
		return nil, protocol.Errorf(protocol.CodeModelFailed, "model %s ended its answer before it was complete", llm.Name())
	}
	return final, nil
}

// announce sends a piece of an answer to watchers. Calls get the ids that the recorded turn will have.
func (q *query) announce(ctx context.Context, c *genai.Content) {
	if c == nil {
		return
	}
	token := protocol.Token{Turn: q.number}
	for _, p := range c.Parts {
		switch {
		case p == nil || p.Thought:
		case p.FunctionCall != nil:
			token.Calls = append(token.Calls, protocol.TokenCall{ID: q.id(len(token.Calls)), Tool: p.FunctionCall.Name})
		default:
			token.Text += p.Text
		}
	}
	if token.Text == "" && len(token.Calls) == 0 {
		return
	}
	data, err := json.Marshal(token)
	if err != nil {
		return
	}
	_ = q.s.c.cfg.Bus.Emit(ctx, natswire.Msg{Subject: q.s.c.cfg.Names.TokenSubject(q.s.key.session, q.epoch), Data: data}) // lossy by design
}

// id is the id of the answer's i-th call.
func (q *query) id(i int) string {
	for len(q.ids) <= i {
		q.ids = append(q.ids, q.s.c.cfg.NewID())
	}
	return q.ids[i]
}
