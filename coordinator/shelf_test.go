package coordinator_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

// reader is a Bus that counts the events of logs that are read.
type reader struct {
	natswire.Bus
	log  string
	read *atomic.Int64
}

func (r reader) Read(ctx context.Context, stream, subject string, from uint64, max int) ([]natswire.Stored, error) {
	got, err := r.Bus.Read(ctx, stream, subject, from, max)
	if stream == r.log {
		r.read.Add(int64(len(got)))
	}
	return got, err
}

// longTalk has a session of so many runs, and returns the model and the count of events read.
func longTalk(f *fabric, runs int) (*oracle, *atomic.Int64) {
	read := new(atomic.Int64)
	f.wrap = func(b natswire.Bus) natswire.Bus { return reader{b, f.names.Log(), read} }
	llm := says("hello", 0)
	f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: llm})}})
	for i := range runs {
		f.say("helper", "s1", strconv.Itoa(i))
		f.rests("helper", "s1", time.Second)
	}
	f.pass(time.Second)
	return llm, read
}

func TestTheNextRunOfALongSessionReadsNothingAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		const runs, more = 150, 10
		llm, read := longTalk(f, runs)
		before := read.Load()
		for range more {
			f.say("helper", "s1", "more")
			f.rests("helper", "s1", time.Second)
		}
		if n := read.Load() - before; n != 0 {
			t.Errorf("%d events were read for %d runs of a session that this coordinator knows", n, more)
		}
		if n, req := llm.requests(); n != runs+more || len(req.Contents) != 2*n-1 {
			t.Errorf("request %d shows %d contents", n, len(req.Contents))
		}
	})
}

func TestWhatAnotherCoordinatorDidIsReadBeforeTheNextRun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		const runs = 150
		llm, read := longTalk(f, runs)
		log := f.log("helper", "s1")
		tail := log[len(log)-1]
		answer, _ := json.Marshal(genai.NewContentFromText("from elsewhere", genai.RoleModel))
		question, _ := json.Marshal(genai.NewContentFromText("asked elsewhere", genai.RoleUser))
		for _, ev := range []protocol.Event{
			{
				Adopt:  &protocol.Adopt{Coordinator: "other", Adoption: "a"},
				Inputs: []protocol.FoldedInput{{ID: "elsewhere", Kind: protocol.InputMessage, Client: "me", Content: question}},
			},
			{Turn: &protocol.Turn{Agent: "helper", Content: answer, RequestSeq: tail.seq + 1000}, Stop: &protocol.Stop{Kind: protocol.StopDone}},
		} {
			ev.V, ev.ID, ev.Epoch, ev.At, ev.Snapshot = protocol.Version, protocol.NewID(), tail.Epoch+1, tail.At, tail.Snapshot
			data, _ := protocol.Encode(ev)
			f.publish(natswire.Msg{Subject: f.names.LogSubject("helper", "s1"), Data: data})
		}
		before := read.Load()
		f.repeat("helper", "s1", "elsewhere", "asked elsewhere") // known by now
		f.say("helper", "s1", "and here")
		f.pass(time.Second)
		if n := read.Load() - before; n != 2 {
			t.Errorf("%d events were read, want the two that are new", n)
		}
		n, req := llm.requests()
		if n != runs+1 || len(req.Contents) != 2*runs+3 || req.Contents[2*runs+1].Parts[0].Text != "from elsewhere" {
			t.Errorf("request %d shows %d contents", n, len(req.Contents))
		}
		log = f.log("helper", "s1")
		if last := log[len(log)-1]; last.Epoch != tail.Epoch+2 || last.Stop == nil {
			t.Errorf("the log ends with epoch %d, %+v", last.Epoch, last.Stop)
		}
	})
}
