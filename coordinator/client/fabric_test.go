package client

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*Server).startGoRoutine.func1"))
}

// fabric is a server on which a test plays coordinator and workers by hand.
type fabric struct {
	t    *testing.T
	conn *natswire.Conn
	*Client
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	conn := natstest.Start(t).Connect(t, "")
	c, err := New(Config{Bus: conn, Names: conn.Names(), Client: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	return &fabric{t: t, conn: conn, Client: c}
}

// serve makes the durable that a coordinator of app makes.
func (f *fabric) serve(app string) {
	f.t.Helper()
	n := f.conn.Names()
	err := f.conn.EnsureConsumer(f.t.Context(), natswire.Consumer{
		Stream: n.Input(), Durable: app, Filter: n.InputFilter(app), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1,
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fabric) publish(m natswire.Msg) natswire.Ack {
	f.t.Helper()
	ack, err := f.conn.Publish(f.t.Context(), m)
	if err != nil {
		f.t.Fatal(err)
	}
	return ack
}

// append adds an event to a session's log.
func (f *fabric) append(app, session string, ev protocol.Event) {
	f.t.Helper()
	ev.V, ev.ID = protocol.Version, protocol.NewID()
	f.publish(natswire.Msg{Subject: f.conn.Names().LogSubject(app, session), Data: encode(f.t, ev)})
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// inputs returns what was said to an app.
func (f *fabric) inputs(app string) []protocol.Input {
	f.t.Helper()
	n := f.conn.Names()
	stored, err := f.conn.Read(f.t.Context(), n.Input(), n.InputFilter(app), 1, 100)
	if err != nil {
		f.t.Fatal(err)
	}
	var all []protocol.Input
	for _, s := range stored {
		in, err := protocol.DecodeInput(s.Data)
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, in)
	}
	return all
}

func folded(id string) []protocol.FoldedInput {
	return []protocol.FoldedInput{{ID: id, Kind: protocol.InputMessage, Client: "tester"}}
}

func says(text string) *protocol.Turn {
	content, _ := json.Marshal(Text(text))
	return &protocol.Turn{Agent: "helper", Content: content}
}

func done() *protocol.Stop { return &protocol.Stop{Kind: protocol.StopDone} }

// register puts a worker's beat into the registry.
func (f *fabric) register(worker, tool string, slots, active int, draining bool) {
	f.t.Helper()
	f.publish(natswire.Msg{Subject: f.conn.Names().RegistrationSubject(tool, worker), Data: encode(f.t, protocol.Registration{
		V: protocol.Version, Worker: worker, Declaration: declaration(tool, "d"), Slots: slots, Active: active, Draining: draining,
	})})
}

func declaration(tool, description string) protocol.Declaration {
	return protocol.Declaration{V: protocol.Version, Name: tool, Description: description, Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
}

// accept puts a declaration into the bucket of tools.
func (f *fabric) accept(tool, description string) string {
	f.t.Helper()
	d := declaration(tool, description)
	f.publish(natswire.Msg{Subject: f.conn.Names().ToolSubject(tool, d.Digest()), Data: encode(f.t, protocol.Accepted{V: protocol.Version, Declaration: d, Worker: "w1"})})
	return d.Digest()
}

func wantCode(t *testing.T, err error, code protocol.Code) {
	t.Helper()
	if protocol.CodeOf(err) != code {
		t.Fatalf("error %v, want code %q", err, code)
	}
}

// soon bounds what must come by itself.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func epoch(n uint64) string { return strconv.FormatUint(n, 10) }
