package turn

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// MaxTurn is the size limit in bytes of what a model's answer takes in the log, contents and calls together. The rest of
// an event is for the answers that are appended with it.
const MaxTurn = protocol.MaxEvent / 2

// RetryPause is the time a call's budget holds for the pause before each further attempt.
const RetryPause = 10 * time.Second

// Decide makes the turn to record of a model's final answer, with the verdict on each call it asks for. id names the i-th
// call of the answer, from 0; the caller gives the same ids to the calls seen in partial responses. RequestSeq, times and
// span are the caller's to fill.
//
// A call that cannot run gets verdict refuse and an answer that the model reads: unknown_tool, schema_violation (or the
// decoder's own code), limit_exceeded over the agent's calls per turn. One that could run gets verdict ask and a
// confirmation when its tool is declared so or a rule of the policy holds: nobody is asked about what would be refused. One
// that needs no worker gets verdict answer and its answer, whatever the rules say: it does nothing that they could be about. When a
// callback wants people to agree to it, it is refused.
// An answer without calls is the run's last: it fills the agent's output key, and after-agent callbacks are asked. Callbacks
// have their say by desk.Moment; what they set is the turn's.
//
// The error is an *Error: model_refused when the provider blocked request or answer, model_failed when the answer holds
// nothing, is cut or does not fit the output schema, too_large over MaxTurn. Nothing of such an answer is recorded.
func Decide(a *llmagent.LLMAgent, offers []Offer, desk Desk, id func(i int) string, resp *model.LLMResponse) (Decision, error) {
	if err := checkResponse(resp); err != nil {
		return Decision{}, err
	}
	content := &genai.Content{Role: genai.RoleModel, Parts: full(resp.Content.Parts)}
	content.Parts = slices.DeleteFunc(content.Parts, func(p *genai.Part) bool {
		return p.FunctionResponse != nil // answers are the fabric's to give
	})
	raw, err := encode(content)
	if err != nil {
		return Decision{}, protocol.Wrap(err, protocol.CodeModelFailed, "the model's answer cannot be written as JSON")
	}
	cfg := a.Config()
	t := protocol.Turn{
		Agent: a.Name(), AgentDigest: a.Digest(), Model: cfg.Model.Name(),
		Content: raw, Finish: string(resp.FinishReason), Usage: usage(resp.UsageMetadata),
	}
	size := len(raw)
	judge := judge{offers: offers, limits: cfg.Limits, desk: desk, agent: a.Name()}
	for i, f := range functionCalls(content) {
		c, err := judge.call(i, id(i), f)
		if err != nil {
			return Decision{}, err
		}
		t.Calls = append(t.Calls, c)
		size += len(c.Args)
		if r := c.Recorded(); r != nil {
			size += len(r.Value)
		}
		if c.Confirmation != nil {
			size += len(c.Confirmation.Hint) + len(c.Confirmation.Payload) + len(c.Shown)
		}
	}
	if size > MaxTurn {
		return Decision{}, protocol.Errorf(protocol.CodeTooLarge, "the model's answer takes %d bytes of the log, more than %d: ask for less at once, or have tools pass large data between them", size, MaxTurn)
	}
	m := desk.Moment
	var last map[string]json.RawMessage
	if len(t.Calls) == 0 {
		if last, err = final(a, answerText(content)); err != nil {
			return Decision{}, err
		}
		if m != nil {
			if t.After, err = m.last(last); err != nil {
				return Decision{}, err
			}
		}
	}
	t.StateDelta = last
	if m != nil && len(m.Delta) > 0 {
		t.StateDelta = m.Delta
	}
	return Decision{Turn: t, read: recorded(content)}, nil
}

// final is the state that a run's last answer sets.
func final(a *llmagent.LLMAgent, text string) (map[string]json.RawMessage, error) {
	var value json.RawMessage
	var err error
	if a.OutputSchema() != nil {
		value, err = a.ParseOutput(text)
	} else {
		value, err = encode(text)
	}
	key := a.Config().OutputKey
	if err != nil || key == "" || text == "" {
		return nil, err
	}
	return map[string]json.RawMessage{key: value}, nil
}

func usage(u *genai.GenerateContentResponseUsageMetadata) *protocol.Usage {
	if u == nil {
		return nil
	}
	return &protocol.Usage{
		Prompt: int(u.PromptTokenCount), Candidates: int(u.CandidatesTokenCount), Thoughts: int(u.ThoughtsTokenCount),
		Cached: int(u.CachedContentTokenCount), Total: int(u.TotalTokenCount),
	}
}

// judge gives the verdicts of one turn.
type judge struct {
	offers []Offer
	limits llmagent.Limits
	desk   Desk
	agent  string
	ask    *protocol.Ask // of a callback, about the call that is judged
}

// offer is the offer of a tool; nil for none.
func (j *judge) offer(tool string) *Offer {
	for i := range j.offers {
		if j.offers[i].Name == tool {
			return &j.offers[i]
		}
	}
	return nil
}

func (j *judge) names() []string {
	names := make([]string, len(j.offers))
	for i := range j.offers {
		names[i] = j.offers[i].Name
	}
	return names
}

func (j *judge) call(i int, id string, f *genai.FunctionCall) (protocol.Call, error) {
	args := json.RawMessage("{}")
	if len(f.Args) > 0 {
		var err error
		if args, err = encode(f.Args); err != nil {
			return protocol.Call{}, protocol.Wrap(err, protocol.CodeModelFailed, "the arguments of the model's call to %s cannot be written as JSON", f.Name)
		}
	}
	c := protocol.Call{ID: id, ProviderID: f.ID, Tool: f.Name, Args: args, Verdict: protocol.VerdictRun}
	if m := j.desk.Moment; m != nil && m.Hooks.Decisions() && i < j.limits.CallsPerTurn {
		return j.guided(i, c, f), nil
	}
	return j.verdict(i, c, f.Args), nil
}

// ClientCall makes the turn to record of a call that a client asks for: judged like a model's, with id as the call's id.
func ClientCall(offers []Offer, desk Desk, id string, ask protocol.ClientCall) protocol.Turn {
	c := protocol.Call{ID: id, Tool: ask.Tool, Args: ask.Args, Verdict: protocol.VerdictRun}
	j := judge{offers: offers, limits: llmagent.Limits{CallsPerTurn: 1, WallTime: llmagent.DefaultWallTime}, desk: desk}
	return protocol.Turn{Calls: []protocol.Call{j.verdict(0, c, nil)}}
}

// verdict judges c, the i-th call of its turn. decoded is the arguments as the provider's client read them, nil when the
// bytes are the sender's own.
func (j *judge) verdict(i int, c protocol.Call, decoded map[string]any) protocol.Call {
	offer := j.offer(c.Tool)
	if offer == nil {
		return refused(c, protocol.CodeUnknownTool, unknownTool(c.Tool, j.names()))
	}
	c.Digest, c.Effect = offer.Pinned, offer.Class()
	if i >= j.limits.CallsPerTurn {
		return refused(c, protocol.CodeLimit, fmt.Sprintf("not executed: one answer may ask for %d calls at most; ask for the rest in the next", j.limits.CallsPerTurn))
	}
	normal, err := normalize(offer, decoded, c.Args)
	if err != nil {
		e := refusal(err, c.Tool+" was not executed: its arguments are refused")
		return refused(c, e.Code, e.Public)
	}
	c.Args = protocol.Compact(normal)
	if offer.Answer != nil && j.ask != nil {
		return refused(c, protocol.CodeUnsupported, "not executed: a callback wants people to agree to "+c.Tool+" first, and nobody can be asked about a call that needs no worker")
	}
	if offer.Answer != nil { // nothing runs: there is nothing to agree to or to wait for
		answer := offer.Answer(c.Args)
		c.Verdict, c.Answer = protocol.VerdictAnswer, &answer
		return c
	}
	c.LongRunning = offer.LongRunning
	c.Park = orDefault(offer.ParkTimeout, protocol.DefaultParkTimeout)
	if c.Confirmation = j.desk.gate(&c, j.agent, offer.Confirm, j.ask); c.Confirmation != nil {
		c.Verdict = protocol.VerdictAsk
	}
	limit := j.limits.WallTime
	c.AnswersTo = protocol.MailboxResults
	if slow(&c, &offer.Declaration) {
		c.AnswersTo, limit = protocol.MailboxWake, maxSlow
	}
	c.Queue, c.Timeout, c.Budget = budget(&offer.Declaration, limit)
	return c
}

func normalize(offer *Offer, args map[string]any, raw json.RawMessage) (json.RawMessage, error) {
	if err := protocol.Check(raw, protocol.ArgsLimits); err != nil {
		return nil, err
	}
	if place, ok := roundedNumber(args); ok {
		return nil, protocol.Errorf(protocol.CodeSchemaViolation, "the number at %s is beyond 2^53 and lost its last digits on the way from the provider", place)
	}
	return offer.Schema.Normalize(raw)
}

// roundedNumber finds a number that a provider's client read as float64 and that is too large for one to be exact. Adapters
// that keep digits give json.Number.
func roundedNumber(v any) (place string, ok bool) {
	switch v := v.(type) {
	case float64:
		return "", math.Abs(v) > 1<<53
	case map[string]any:
		for key, element := range v { // of several the first by name, whatever the map's order
			if below, found := roundedNumber(element); found {
				if below = "/" + key + below; !ok || below < place {
					place, ok = below, true
				}
			}
		}
	case []any:
		for i, element := range v {
			if below, found := roundedNumber(element); found {
				return "/" + strconv.Itoa(i) + below, true
			}
		}
	}
	return place, ok
}

// maxQuick is how long a call may wait for a worker, and run, for its session's owner to wait for it in memory.
const maxQuick = time.Minute

// maxSlow bounds the budget of a call that its session does not wait for in memory: a call is kept for so long.
const maxSlow = 7 * 24 * time.Hour

// slow reports whether the session parks while the call is open, so that its answer must wake somebody.
func slow(c *protocol.Call, d *protocol.Declaration) bool {
	return c.LongRunning || c.Confirmation != nil || max(d.QueueTimeout, d.Timeout) > maxQuick.Milliseconds()
}

// orDefault is a duration of a declaration in milliseconds, where 0 stands for a default.
func orDefault(ms int64, d time.Duration) int64 {
	if ms == 0 {
		return d.Milliseconds()
	}
	return ms
}

// budget is how long a call may wait, how long one attempt may run, and how long it may take from the event that allowed
// it to its end, in milliseconds; none of it longer than limit.
func budget(d *protocol.Declaration, limit time.Duration) (queue, timeout, all int64) {
	queue, timeout = orDefault(d.QueueTimeout, protocol.DefaultQueueTimeout), orDefault(d.Timeout, protocol.DefaultTimeout)
	attempts := int64(d.Attempts)
	if attempts == 0 {
		attempts = protocol.DefaultAttempts
	}
	if d.Class() == protocol.EffectAtMostOnce {
		attempts = 1 // once it has a claim it is not tried again
	}
	most := limit.Milliseconds()
	queue, timeout = min(queue, most), min(timeout, most)
	attempts = min(attempts, most) // keeps the product in range
	return queue, timeout, min(queue+attempts*timeout+(attempts-1)*RetryPause.Milliseconds(), most)
}

// refusal is an error of normalize with what it is about. A validator's finding is no *Error: it is a schema violation.
func refusal(err error, about string) *protocol.Error {
	code := protocol.CodeOf(err)
	if code == protocol.CodeInternal {
		code = protocol.CodeSchemaViolation
	}
	return &protocol.Error{Code: code, Public: about + ": " + public(err), Err: err}
}

func refused(c protocol.Call, code protocol.Code, text string) protocol.Call {
	c.Verdict = protocol.VerdictRefuse
	c.Refusal = &protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeFailed, Code: code, Value: protocol.ErrorValue(text)}
	return c
}
