package scripted

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// Reply is what the script says to one request, in the provider's form.
type Reply struct {
	Rule   string        // the rule's name, or "turn N", for logs
	Chunks []Chunk       // in order; a plain request gets them as one
	Delay  time.Duration // before each chunk
	Cut    bool          // the connection breaks before the last chunk
	Fault  *Fault        // when set, an HTTP error takes the answer's place
}

// Fault is an HTTP error.
type Fault struct {
	Status     int
	Message    string
	RetryAfter time.Duration // 0 when the server names no delay
}

// Player plays a script. Which answer a request gets depends on its contents alone; only the faults with times are
// counted, each per rule and exact contents: every conversation meets its own, and asking again gets past it. It may be
// used by many sessions at once.
type Player struct {
	script *Script

	mu     sync.Mutex
	faults map[[sha256.Size]byte]int
}

// maxFaults bounds the counters a player remembers; beyond it they start over.
const maxFaults = 10_000

// NewPlayer plays s.
func NewPlayer(s *Script) *Player {
	return &Player{script: s, faults: map[[sha256.Size]byte]int{}}
}

// Reply answers a request with these contents. It returns an *Error of code model_refused when the script has nothing to
// say to it.
func (p *Player) Reply(contents []*genai.Content) (*Reply, error) {
	s := stateOf(contents)
	if p.script.turns != nil {
		if s.asked >= len(p.script.turns) {
			return nil, protocol.Errorf(protocol.CodeModelRefused, "the script has %d turns and is asked for turn %d", len(p.script.turns), s.asked+1)
		}
		t := p.script.turns[s.asked]
		reply := &Reply{Rule: fmt.Sprintf("turn %d", s.asked+1), Chunks: copyChunks(t.chunks)}
		p.behave(reply, t.behaviour, contents)
		return reply, nil
	}
	for i := range p.script.rules {
		r := &p.script.rules[i]
		captures, ok := r.match(s)
		if !ok {
			continue
		}
		reply := &Reply{Rule: r.name}
		p.behave(reply, r.behaviour, contents)
		if reply.Fault != nil {
			return reply, nil
		}
		var err error
		if reply.Chunks, err = r.answer(s, captures); err != nil {
			return nil, protocol.Wrap(err, protocol.CodeModelRefused, "the script's %s cannot answer: %v", r.name, err)
		}
		return reply, nil
	}
	return nil, protocol.Errorf(protocol.CodeModelRefused, "no rule of the script matches turn %d after %.200q", s.turn, s.user)
}

// behave adds delay, cut and, while its count lasts, the fault.
func (p *Player) behave(reply *Reply, b behaviour, contents []*genai.Content) {
	reply.Delay, reply.Cut = b.delay, b.cut
	if b.fault == nil || b.fault.times > 0 && !p.count(reply.Rule, contents, b.fault.times) {
		return
	}
	reply.Fault = &Fault{Status: b.fault.status, Message: b.fault.message, RetryAfter: b.fault.retryAfter}
}

// count reports whether this request is still among the first times of its kind.
func (p *Player) count(rule string, contents []*genai.Content, times int) bool {
	b, _ := json.Marshal(contents)
	key := sha256.Sum256(append([]byte(rule+"\x00"), b...))
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) >= maxFaults {
		clear(p.faults)
	}
	p.faults[key]++
	return p.faults[key] <= times
}

// Transient reports whether asking again may help.
func (f *Fault) Transient() bool {
	return f.Status == http.StatusTooManyRequests || f.Status >= 500
}
