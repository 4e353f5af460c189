package turn

import (
	"slices"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// History is what a model is shown of a session: the log's events in order, read once each. The zero value is the history
// of an empty log. It is used by one goroutine; the contents it gives out are shared between requests and must not be
// changed.
//
// Which content follows which is not the log's order but the conversation's: a model's content comes before inputs that
// were folded after its request was built, and the responses to its calls come right behind it.
type History struct {
	seq      uint64
	contents []*genai.Content
	authors  []string  // of contents, by place: the agent that spoke, or was answered; empty for users
	retold   []retold  // of contents, by place, as far as it was needed: what other agents are told
	speakers []string  // all agents that are in authors
	paired   int       // so many of contents were found to pair, whole exchanges only
	runStart int       // where the run that is going on, or comes next, begins in contents
	decided  Decision  // the turn that is being appended here, if any
	open     *exchange // the newest model content, while it still waits for responses to its calls
	pending  []*placed // older exchanges with calls that are still to end, or whose end no model was asked about
	waiting  []message // accepted inputs that no model content was made for
	size     int       // see Size
	broken   error
}

type message struct {
	seq     uint64
	content *genai.Content
}

// Size is about how many bytes of memory the history takes.
func (h *History) Size() int { return h.size }

// allowance is for what a content takes beside its text: about what its structures and maps do.
const allowance = 600

// Seq is the log sequence of the newest event that was added: the RequestSeq of a turn asked for now.
func (h *History) Seq() uint64 { return h.seq }

// Add reads the log's next event, stored at seq. An event that was added before is left out. A content of the log that
// cannot be read makes every later Request fail.
func (h *History) Add(seq uint64, ev protocol.Event) {
	if seq <= h.seq {
		return
	}
	h.seq = seq
	for i := range ev.Answers {
		h.size += allowance + len(ev.Answers[i].Value)
	}
	for i := range ev.Inputs {
		h.size += allowance + len(ev.Inputs[i].Content)
		h.addInput(seq, &ev.Inputs[i])
	}
	if h.open != nil {
		h.open.add(ev.Answers)
	}
	h.revise(ev.Answers)
	if ev.Turn != nil {
		h.size += allowance + len(ev.Turn.Content)
		h.addTurn(ev.Turn)
	}
	if ev.Stop != nil {
		h.stop(ev.Stop.Kind)
	}
}

func (h *History) stop(kind protocol.StopKind) {
	switch kind {
	case protocol.StopDone, protocol.StopCancelled:
		h.close()
		h.place(h.seq)
		h.runStart = len(h.contents)
	case protocol.StopParked:
		if h.open == nil { // the model had the last word: what comes next is a run to itself
			h.runStart = len(h.contents)
		}
	}
}

func (h *History) addInput(seq uint64, in *protocol.FoldedInput) {
	if in.Refused != nil || in.Kind != protocol.InputMessage {
		return
	}
	c, err := decode(in.Content)
	if err != nil {
		h.fail(seq, err)
		return
	}
	c.Role = genai.RoleUser
	if c.Parts = plain(c.Parts); len(c.Parts) > 0 {
		h.waiting = append(h.waiting, message{seq: seq, content: c})
	}
}

func (h *History) addTurn(t *protocol.Turn) {
	if len(t.Content) == 0 {
		return // a client's own call, or an entry into an agent: nothing that the conversation knows of
	}
	c, err := h.content(t)
	if err != nil {
		h.fail(h.seq, err)
		return
	}
	h.close()
	h.told(t.RequestSeq)
	h.place(t.RequestSeq)
	c.Role = genai.RoleModel
	c.Parts = full(c.Parts)
	if len(t.After) > 0 {
		after, err := decode(t.After)
		if err != nil {
			h.fail(h.seq, err)
			return
		}
		h.size += allowance + len(t.After)
		c.Parts = append(c.Parts, full(after.Parts)...)
	}
	if len(c.Parts) == 0 {
		return
	}
	h.append(c, t.Agent)
	h.open = newExchange(c, t.Calls)
	if h.open != nil {
		h.open.agent = t.Agent
	}
}

// append puts a content that agent said, or is answered with, at the end of the conversation; no agent is a user.
func (h *History) append(c *genai.Content, agent string) {
	h.contents = append(h.contents, c)
	h.authors = append(h.authors, agent)
	if agent != "" && !slices.Contains(h.speakers, agent) {
		h.speakers = append(h.speakers, agent)
	}
}

// Expect says that d is about to be appended: when Add gets its event, the content need not be read from its bytes.
func (h *History) Expect(d Decision) { h.decided = d }

func (h *History) content(t *protocol.Turn) (*genai.Content, error) {
	d := h.decided
	h.decided = Decision{}
	if d.read != nil && len(d.Content) == len(t.Content) && &d.Content[0] == &t.Content[0] {
		return d.read, nil
	}
	return decode(t.Content)
}

// place puts the inputs that were folded up to seq into the conversation.
func (h *History) place(seq uint64) {
	n := 0
	for n < len(h.waiting) && h.waiting[n].seq <= seq {
		h.append(h.waiting[n].content, "")
		n++
	}
	h.waiting = h.waiting[n:]
}

func (h *History) fail(seq uint64, err error) {
	if h.broken == nil {
		h.broken = protocol.Wrap(err, protocol.CodeInternal, "the content at sequence %d of the session's log cannot be read", seq)
	}
}

// Contents is the conversation so far with open as answers that the log does not hold yet, all of it or, with runOnly, the
// run that is going on. When there is nothing to answer but the late end of an earlier call, the conversation ends with the
// responses of that call's exchange, and what lies between is left out: the model would take its own later words for the
// end. It returns an *Error of code internal when a content could not be read or calls and responses do not pair.
//
// Whatever agent spoke, its contents are a model's here; ContentsFor is what one of several agents is shown.
func (h *History) Contents(open []protocol.Answer, runOnly bool) ([]*genai.Content, error) {
	contents, _, _, err := h.conversation(open, runOnly)
	return contents, err
}

// conversation is Contents, of which the first is the one at place from in h.contents. Those up to place end are, or are
// newer forms of, what stands there; the rest is the open exchange's responses and what waits.
func (h *History) conversation(open []protocol.Answer, runOnly bool) (contents []*genai.Content, from, end int, err error) {
	if h.broken != nil {
		return nil, 0, 0, h.broken
	}
	end = len(h.contents)
	if runOnly {
		from = h.runStart
	}
	news := h.news(open)
	if news != nil {
		end = news.at + 1
		if runOnly {
			from = news.runStart
		}
	}
	contents = make([]*genai.Content, 0, end-from+1+len(h.waiting))
	contents = append(contents, h.contents[from:end]...)
	for _, x := range h.pending {
		if from <= x.at && x.at < end && x.changes(open) {
			contents[x.at-from] = x.responses(open)
		}
	}
	if h.open != nil {
		contents = append(contents, h.open.responses(open))
	}
	for _, m := range h.waiting {
		contents = append(contents, m.content)
	}
	known := 0 // contents change only in how calls ended: those of earlier requests need no second look
	if news == nil {
		known = max(h.paired-from, 0)
	}
	if err := checkPairs(contents[known:], known); err != nil {
		return nil, 0, 0, err
	}
	if news == nil && h.paired >= from {
		h.paired = len(h.contents)
		if h.open != nil {
			h.paired-- // its responses are still to come
		}
	}
	return contents, from, end, nil
}

// Message is the message that the run began with which is going on; nil when there is none.
func (h *History) Message(open []protocol.Answer) *genai.Content { return h.runMessage(open) }

// runMessage is the message that the run began with which a request with open answers belongs to; nil when there is none.
func (h *History) runMessage(open []protocol.Answer) *genai.Content {
	from := h.runStart
	if news := h.news(open); news != nil {
		from = news.runStart
	}
	for _, c := range h.contents[from:] {
		if c.Role == genai.RoleUser && c.Parts[0].FunctionResponse == nil {
			return c
		}
	}
	if len(h.waiting) > 0 {
		return h.waiting[0].content
	}
	return nil
}
