package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

func TestASessionOutlivesEveryProcess(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("agents/helper.yaml", agentFile)
	model := p.start("fake-llm", "--script", p.write("script.yaml", countScript))
	p.env = append(p.env, "GOOGLE_GEMINI_BASE_URL="+model.says(&model.stdout, `(http://\S+)\n`)[1])
	up := p.up("--agents", "agents")
	worker := p.serveCount(nil, "wc", "-w")
	first := p.run("run", "--agent", "helper", "count a b c, d e")
	if got := first.stdout.String(); got != "a b c: 3 words. d e: 2 words. \n" {
		t.Fatalf("%q", got)
	}
	session := first.says(&first.stderr, `(?m)^session (\S+)$`)[1]
	for _, c := range []*process{up, worker, model} {
		c.kill()
	}

	p.gemini(countScript)
	p.up("--agents", "agents")
	p.serveCount(nil, "wc", "-w")
	if got := p.ok("run", "--session", session, "count x y"); got != "x y: 2 words. \n" {
		t.Errorf("%q", got)
	}
	show := p.ok("sessions", "show", session)
	for _, want := range []string{"count a b c, d e", "helper: a b c: 3 words. d e: 2 words.", "count x y", "helper: x y: 2 words."} {
		_, rest, ok := strings.Cut(show, want)
		if !ok {
			t.Fatalf("%q is not there, or not in its place:\n%s", want, show)
		}
		show = rest
	}
}

func TestUpKeepsToolsAndSessions(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.gemini(countScript)
	p.write("agents/helper.yaml", agentFile)
	up := p.up("--agents", "agents")
	worker := p.serveCount(nil, "wc", "-w")
	p.ok("run", "--agent", "helper", "count a b")
	before := p.ok("sessions", "--output", "json")
	worker.terminate()
	up.terminate()
	if worker.exit() != 0 || up.exit() != 0 {
		t.Error("they do not end well")
	}
	p.up("--agents", "agents")
	if after := p.ok("sessions", "--output", "json"); after != before || !strings.Contains(after, `"state": "done"`) {
		t.Errorf("before %s after %s", before, after)
	}
	if got := p.ok("tools", "show", "word_count"); !strings.Contains(got, "Counts the words of a text") {
		t.Error(got)
	}
}

// held serves a model whose answers wait: each write of a response but the first ones takes a token.
type heldModel struct {
	http.Handler
	free    int           // responses that do not wait
	pieces  int           // writes of each other response that do not wait
	tokens  chan struct{} // one for each write that waits
	waiting chan struct{} // told of each that does

	mu   sync.Mutex
	seen int
}

func (h *heldModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.seen++
	free := h.seen <= h.free
	h.mu.Unlock()
	if free {
		h.Handler.ServeHTTP(w, r)
		return
	}
	h.Handler.ServeHTTP(&heldWriter{ResponseWriter: w, h: h, r: r}, r)
}

type heldWriter struct {
	http.ResponseWriter
	h      *heldModel
	r      *http.Request
	writes int
}

func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *heldWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

func (w *heldWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes > w.h.pieces {
		select {
		case w.h.waiting <- struct{}{}:
		default:
		}
		select {
		case <-w.h.tokens:
		case <-w.r.Context().Done():
			return 0, w.r.Context().Err()
		}
	}
	return w.ResponseWriter.Write(b)
}

// heldGemini is gemini with a model that waits.
func (p *place) heldGemini(script string, free, pieces int) *heldModel {
	p.t.Helper()
	h := &heldModel{Handler: handler(p.t, script), free: free, pieces: pieces, tokens: make(chan struct{}), waiting: make(chan struct{}, 1)}
	server := httptest.NewServer(h)
	p.t.Cleanup(server.Close)
	p.env = append(p.env, "GOOGLE_GEMINI_BASE_URL="+server.URL)
	return h
}

func TestRunStreamsTheAnswerAsItComes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.heldGemini("rules:\n  - user: 'talk'\n    text: 'first half, second half'\n    chunks: 2\n", 0, 1)
	p.write("agents/helper.yaml", strings.Split(agentFile, "tools:")[0])
	p.up("--agents", "agents")
	run := p.start("run", "--agent", "helper", "--stream", "talk")
	run.says(&run.stdout, `^first half`)
	if got := run.stdout.String(); strings.Contains(got, "second half") {
		t.Errorf("it is all there at once: %q", got)
	}
	close(model.tokens)
	if code := run.exit(); code != 0 || run.stdout.String() != "first half, second half\n" {
		t.Errorf("exit %d, %q", code, run.stdout.String())
	}
}

func TestAnotherCoordinatorFinishesTheRunOfADeadOne(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.heldGemini(countScript, 1, 0)
	p.write("agents/helper.yaml", agentFile)
	p.up() // the server; its own coordinator serves no agent
	p.serveCount(nil, "wc", "-w")
	doomed := p.start("coordinator", "--agents", "agents")
	doomed.says(&doomed.stderr, "coordinator is up")
	run := p.start("run", "--agent", "helper", "count a b c")
	run.says(&run.stderr, `< word_count`)
	<-model.waiting // the run is at its second model call
	doomed.kill()
	heir := p.start("coordinator", "--agents", "agents")
	close(model.tokens)
	if code := run.exit(); code != 0 || run.stdout.String() != "a b c: 3 words. \n" {
		t.Errorf("exit %d, %q", code, run.stdout.String())
	}
	session := run.says(&run.stderr, `(?m)^session (\S+)$`)[1]
	if log := p.ok("sessions", "log", session); strings.Count(log, "adopt by") != 2 || strings.Count(log, "=run") != 1 {
		t.Error(log)
	}
	heir.terminate()
	if code := heir.exit(); code != 0 {
		t.Errorf("the coordinator exits with %d", code)
	}
}

func TestATerminatedCoordinatorHandsItsRunOver(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	command, starts, release := p.held()
	p.gemini(countScript)
	p.write("agents/helper.yaml", agentFile)
	p.up()
	p.serveCount(nil, command...)
	first := p.start("coordinator", "--agents", "agents")
	first.says(&first.stderr, "coordinator is up")
	run := p.start("run", "--agent", "helper", "count a b c")
	await(t, "the call runs", func() bool { return len(starts()) == 1 })
	second := p.start("coordinator", "--agents", "agents")
	second.says(&second.stderr, "coordinator is up")
	first.terminate()
	if code := first.exit(); code != 0 {
		t.Errorf("the coordinator exits with %d", code)
	}
	release()
	if code := run.exit(); code != 0 || run.stdout.String() != "a b c: 3 words. \n" {
		t.Errorf("exit %d, %q", code, run.stdout.String())
	}
	if got := starts(); len(got) != 1 {
		t.Errorf("the call ran %d times", len(got))
	}
}
