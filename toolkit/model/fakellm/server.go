package fakellm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

// maxBody bounds one request, in bytes: Gemini's limit for inline data.
const maxBody = 20 << 20

// Config is what New needs.
type Config struct {
	Script *scripted.Script
	Keep   int    // requests that Requests remembers, the newest; 0 is 1000
	Ledger string // file to which a JSON line is appended for each request, before it is answered; empty is none
}

// Recorded is one request that came, in the form of the ledger.
type Recorded struct {
	N      int             `json:"n"` // from 1
	Model  string          `json:"model"`
	Stream bool            `json:"stream"`
	Status int             `json:"status"`          // of the response
	Rule   string          `json:"rule,omitempty"`  // that answered
	Error  string          `json:"error,omitempty"` // why it was refused
	Body   json.RawMessage `json:"-"`               // as it came; nil when it was no JSON
}

// Server is an http.Handler that plays a script. It may be used by many sessions at once.
type Server struct {
	keep   int
	player *scripted.Player
	issued *issued

	mu      sync.Mutex
	count   int
	kept    []Recorded
	ledger  *os.File
	failure error // of the ledger
}

// New makes a server. It returns an *Error of code usage when the ledger cannot be opened.
func New(cfg Config) (*Server, error) {
	if cfg.Script == nil {
		return nil, protocol.Errorf(protocol.CodeUsage, "fake-llm: there is no script")
	}
	if cfg.Keep == 0 {
		cfg.Keep = 1000
	}
	s := &Server{keep: max(cfg.Keep, 0), player: scripted.NewPlayer(cfg.Script), issued: newIssued()}
	if cfg.Ledger != "" {
		f, err := os.OpenFile(cfg.Ledger, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, protocol.Wrap(err, protocol.CodeUsage, "fake-llm: the ledger %s cannot be opened", cfg.Ledger)
		}
		s.ledger = f
	}
	return s, nil
}

// Close closes the ledger and returns the first error that writing to it met. Requests go on to be answered.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger == nil {
		return s.failure
	}
	err := s.ledger.Close()
	s.ledger = nil
	return errors.Join(s.failure, err)
}

// Requests are the newest requests, oldest first.
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

// Count is how many requests came, refused ones included.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *Server) record(r Recorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	r.N = s.count
	if s.kept = append(s.kept, r); len(s.kept) > s.keep {
		s.kept = slices.Delete(s.kept, 0, len(s.kept)-s.keep)
	}
	if s.ledger == nil {
		return
	}
	line, _ := json.Marshal(r)
	if _, err := s.ledger.Write(append(line, '\n')); err != nil && s.failure == nil {
		s.failure = err
	}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, method, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1beta/models/"), ":")
	if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v1beta/models/") || !ok || method != "generateContent" && method != "streamGenerateContent" {
		writeFault(w, &apiFault{status: http.StatusNotFound, message: fmt.Sprintf("%s %s is not served here", r.Method, r.URL.Path)})
		return
	}
	rec := Recorded{Model: name, Stream: method == "streamGenerateContent", Status: http.StatusOK}
	reply, err := s.answer(r, &rec)
	if fault, ok := errors.AsType[*apiFault](err); ok {
		rec.Status, rec.Error = fault.status, fault.message
		s.record(rec)
		writeFault(w, fault)
		return
	}
	s.record(rec)
	for _, c := range reply.Chunks {
		s.issued.note(c.Parts)
	}
	if rec.Stream {
		writeStream(w, r, name, reply)
	} else {
		writeWhole(w, r, name, reply)
	}
}

// answer reads and checks a request and asks the script. Its errors are *apiFault.
func (s *Server) answer(r *http.Request, rec *Recorded) (*scripted.Reply, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, invalid("the request could not be read: %v", err)
	}
	if len(body) > maxBody {
		return nil, &apiFault{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("Request payload size exceeds the limit: %d bytes.", maxBody)}
	}
	if json.Valid(body) {
		rec.Body = body
	}
	switch {
	case r.Header.Get("x-goog-api-key") == "" && r.URL.Query().Get("key") == "":
		return nil, &apiFault{status: http.StatusForbidden, message: "Method doesn't allow unregistered callers. Please use an API key."}
	case rec.Stream && r.URL.Query().Get("alt") != "sse":
		return nil, invalid("this server streams as server-sent events only: add alt=sse")
	}
	q, err := readRequest(body)
	if err != nil {
		return nil, err
	}
	if err := s.issued.check(q.Contents); err != nil {
		return nil, err
	}
	reply, err := s.player.Reply(q.Contents)
	if err != nil {
		return nil, invalid("%v", err)
	}
	rec.Rule = reply.Rule
	if f := reply.Fault; f != nil {
		return nil, &apiFault{status: f.Status, message: f.Message, retryAfter: f.RetryAfter}
	}
	return reply, nil
}
