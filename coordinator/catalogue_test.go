package coordinator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

// shop is a coordinator whose agent may use the tool hash, and the workers that serve it, played by beats.
type shop struct {
	*fabric
	llm     *oracle
	serving map[string]protocol.Declaration // by worker
}

func inShop(t *testing.T, test func(t *testing.T, f *shop)) {
	t.Helper()
	inBubble(t, func(t *testing.T, f *fabric) {
		s := &shop{fabric: f, llm: says("hello", 0), serving: map[string]protocol.Declaration{}}
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: s.llm, Tools: pools("hash")})}})
		test(t, s)
	})
}

// serve lets time go by, in which the workers beat.
func (s *shop) serve(d time.Duration) {
	s.Helper()
	for left := d; ; left -= 5 * time.Second {
		for worker, decl := range s.serving {
			s.beat(worker, decl)
		}
		if left <= 0 {
			s.pass(0)
			return
		}
		s.pass(min(left, 5*time.Second))
	}
}

// offered is the description of the tool that a model is shown now; empty when it is shown none.
func (s *shop) offered() string {
	s.Helper()
	s.say("helper", "s1", "hi")
	s.rests("helper", "s1", time.Second)
	s.pass(0)
	_, req := s.llm.requests()
	if len(req.Config.Tools) == 0 {
		return ""
	}
	return req.Config.Tools[0].FunctionDeclarations[0].Description
}

func TestNewestVersionWithALivingWorkerIsOffered(t *testing.T) {
	inShop(t, func(t *testing.T, f *shop) {
		if got := f.offered(); got != "" {
			t.Errorf("nobody registered: %q is offered", got)
		}
		f.serving["w1"] = declaration("hash", "old")
		f.serve(time.Second)
		if got := f.offered(); got != "old" {
			t.Errorf("one version: %q is offered", got)
		}
		f.serving["w2"] = declaration("hash", "new")
		f.serve(time.Second)
		if got := f.offered(); got != "new" {
			t.Errorf("two versions: %q is offered", got)
		}
		delete(f.serving, "w2")
		f.serve(time.Minute)
		if got := f.offered(); got != "old" {
			t.Errorf("the new version was rolled back: %q is offered", got)
		}
		delete(f.serving, "w1")
		f.serve(time.Minute)
		if got := f.offered(); got != "new" {
			t.Errorf("the pool is at zero: %q is offered", got)
		}
	})
}

func TestDrainingWorkerDoesNotKeepAVersion(t *testing.T) {
	inShop(t, func(t *testing.T, f *shop) {
		f.serving["w1"] = declaration("hash", "old")
		f.serve(time.Second)
		f.beat("w2", declaration("hash", "new"), func(r *protocol.Registration) { r.Draining = true })
		f.serve(time.Second)
		if got := f.offered(); got != "old" {
			t.Errorf("%q is offered", got)
		}
	})
}

func TestBadDeclarationIsRefusedAndSaidOnce(t *testing.T) {
	noSchema := declaration("hash", "bad schema")
	noSchema.Parameters = json.RawMessage(`{"type":"object","properties":{"n":{"type":"nonsense"}}}`)
	noEffect := declaration("hash", "bad effect")
	noEffect.Effect = "whatever"
	for name, bad := range map[string]protocol.Declaration{"schema": noSchema, "effect": noEffect} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(t *testing.T, f *shop) {
				f.serving["w1"] = bad
				f.serve(time.Minute)
				if got := f.offered(); got != "" {
					t.Errorf("%q is offered", got)
				}
				if n := f.logs.count("is refused"); n != 1 {
					t.Errorf("it was said %d times", n)
				}
				f.serving["w1"] = declaration("hash", "good")
				f.serve(time.Second)
				if got := f.offered(); got != "good" {
					t.Errorf("after it was mended: %q is offered", got)
				}
			})
		})
	}
}

func TestToolThatAnotherCoordinatorAcceptedIsKnownOnceItIsAskedFor(t *testing.T) {
	inShop(t, func(t *testing.T, f *shop) {
		d := declaration("hash", "v1")
		data, _ := protocol.Encode(protocol.Accepted{V: protocol.Version, Declaration: d, Worker: "w1"})
		f.publish(natswire.Msg{Subject: f.names.ToolSubject("hash", d.Digest()), Data: data})
		if got := f.offered(); got != "v1" {
			t.Errorf("to a model: %q is offered", got)
		}
		d = declaration("count", "v1")
		data, _ = protocol.Encode(protocol.Accepted{V: protocol.Version, Declaration: d, Worker: "w1"})
		f.publish(natswire.Msg{Subject: f.names.ToolSubject("count", d.Digest()), Data: data})
		for _, name := range []string{"count", "coun", "no.name"} {
			in, _ := protocol.Encode(protocol.Input{V: protocol.Version, ID: "call-" + name[:2], Kind: protocol.InputCall, Call: &protocol.ClientCall{Tool: name, Args: json.RawMessage(`{}`)}})
			f.publish(natswire.Msg{Subject: f.names.InputSubject(protocol.CallsApp, "me", name[:2]+"-session"), Data: in})
		}
		f.pass(time.Second)
		if queued := f.w.Messages(f.names.Calls()); len(queued) != 1 || queued[0].Subject != f.names.CallSubject("count") {
			t.Errorf("%d calls are queued: %+v", len(queued), queued)
		}
	})
}

func TestRefusedRegistrationThatComesBackIsSpokenOfAgain(t *testing.T) {
	inShop(t, func(t *testing.T, f *shop) {
		bad := declaration("hash", "v1")
		bad.Parameters = json.RawMessage(`{"type":"no type"}`)
		for n := 1; n <= 2; n++ {
			f.serving["w1"] = bad
			f.serve(time.Minute)
			if got := f.logs.count("a registration is refused"); got != n {
				t.Errorf("the refusal was told %d times, want %d", got, n)
			}
			delete(f.serving, "w1")
			f.serve(time.Minute)
		}
	})
}

func TestRegistrationSpeaksForItsOwnToolOnly(t *testing.T) {
	inShop(t, func(t *testing.T, f *shop) {
		data, _ := protocol.Encode(protocol.Registration{V: protocol.Version, Worker: "w1", Declaration: declaration("hash", "forged"), Slots: 1})
		f.publish(natswire.Msg{Subject: f.names.RegistrationSubject("other", "w1"), Data: data})
		f.serve(time.Minute)
		if got := f.offered(); got != "" {
			t.Errorf("%q is offered", got)
		}
	})
}

func TestForgottenToolComesBackWithTheNextBeat(t *testing.T) {
	inShop(t, func(t *testing.T, f *shop) {
		d := declaration("hash", "v1")
		f.serving["w1"] = d
		f.serve(time.Second)
		delete(f.serving, "w1")
		f.serve(time.Minute)
		if got := f.offered(); got != "v1" {
			t.Fatalf("the pool is at zero: %q is offered", got)
		}
		f.publish(natswire.DeleteKey(f.names.ToolSubject("hash", d.Digest())))
		f.serve(15 * time.Second)
		if got := f.offered(); got != "" {
			t.Errorf("forgotten: %q is offered", got)
		}
		f.serving["w1"] = d
		f.serve(time.Second)
		if got := f.offered(); got != "v1" {
			t.Errorf("it beats again: %q is offered", got)
		}
	})
}

func TestConsumerFollowsTheDeclaration(t *testing.T) {
	inShop(t, func(t *testing.T, f *shop) {
		limit := func() int {
			t.Helper()
			state, err := f.client.ConsumerState(t.Context(), f.names.Calls(), "hash")
			if err != nil {
				t.Fatal(err)
			}
			return state.Config.MaxAckPending
		}
		d := declaration("hash", "v1")
		f.serving["w1"] = d
		f.serve(time.Second)
		if got := limit(); got != -1 {
			t.Errorf("no limit is %d", got)
		}
		d.MaxActive = 3 // not in the digest
		f.serving["w2"] = d
		f.serve(15 * time.Second)
		if got := limit(); got != 3 {
			t.Errorf("the limit is %d, want that of the worker that started last", got)
		}
		sets := len(f.w.Trace())
		f.serve(time.Minute)
		for _, line := range f.w.Trace()[sets:] {
			if strings.Contains(line, "ensure consumer hash") {
				t.Errorf("the consumer is made again though nothing changed: %s", line)
			}
		}
	})
}

func TestConsumerThatWasDeletedIsMadeForAWaitingWorker(t *testing.T) {
	inShop(t, func(t *testing.T, f *shop) {
		d := declaration("hash", "v1")
		f.serving["w1"] = d
		f.serve(time.Second)
		if err := f.client.DeleteConsumer(t.Context(), f.names.Calls(), "hash"); err != nil {
			t.Fatal(err)
		}
		f.beat("w1", d, func(r *protocol.Registration) { r.Waiting = true })
		f.pass(time.Second)
		if _, err := f.client.ConsumerState(t.Context(), f.names.Calls(), "hash"); err != nil {
			t.Error(err)
		}
	})
}
