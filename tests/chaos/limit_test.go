package chaos

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// fullFor is how long a stream or a disk stays full: longer than the lease of an input.
const fullFor = 7 * time.Second

func TestAFullStreamLosesNothing(t *testing.T) {
	skipShort(t)
	s, model := natstest.Start(t), serveModel(t)
	names := func(p *place) natswire.Names { return p.conn.Names() }
	for _, c := range []struct {
		name   string
		stream func(p *place) string
		say    string
		also   bool // without -all
	}{
		{name: "INPUT", stream: func(p *place) string { return names(p).Input() }, say: "do", also: true},
		{name: "LOG", stream: func(p *place) string { return names(p).Log() }, say: "do"},
		{name: "CALLS", stream: func(p *place) string { return names(p).Calls() }, say: "do"},
		{name: "RESULTS", stream: func(p *place) string { return names(p).Results() }, say: "do"},
		{name: "TIMERS", stream: func(p *place) string { return names(p).Timers() }, say: "do"},
		{name: "OBJ", stream: func(p *place) string { return names(p).ObjectStream() }, say: "read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !*all && !c.also {
				t.Skip("make chaos does it")
			}
			t.Parallel()
			p := newPlace(t, s, model, "full"+strings.ToLower(c.name), longTimes)
			members := p.members()
			p.send("do it before")
			p.answered(p.sent[0])
			p.limit(c.stream(p), 1)
			if c.name == "INPUT" {
				_, err := p.client.Send(t.Context(), "helper", "", client.Text("do it now"))
				if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Code != protocol.CodeStorageFull || e.Public == "" {
					t.Errorf("an input to a full stream: %v", err)
				}
			} else {
				for range 4 {
					p.send(c.say + " it now")
				}
			}
			pause(t, fullFor)
			p.limit(c.stream(p), -1)
			p.send(c.say + " it afterwards")
			p.allWell()
			drain(members...)
			p.judge()
		})
	}
}

// limit sets how many bytes a stream may hold, as an operator does; -1 is no limit.
func (p *place) limit(stream string, bytes int64) {
	p.t.Helper()
	ask := func(verb string, body []byte) map[string]json.RawMessage {
		m, err := p.conn.Request(p.t.Context(), natswire.Msg{Subject: "$JS.API.STREAM." + verb + "." + stream, Data: body})
		if err != nil {
			p.t.Fatal(err)
		}
		var reply map[string]json.RawMessage
		if err := json.Unmarshal(m.Data, &reply); err != nil || reply["error"] != nil {
			p.t.Fatalf("%s of %s: %s, %v", verb, stream, m.Data, err)
		}
		return reply
	}
	var config map[string]any
	if err := json.Unmarshal(ask("INFO", nil)["config"], &config); err != nil {
		p.t.Fatal(err)
	}
	config["max_bytes"] = bytes
	body, err := json.Marshal(config)
	if err != nil {
		p.t.Fatal(err)
	}
	ask("UPDATE", body)
}

// allWell waits until all that was sent is answered rightly and nothing is held any more.
func (p *place) allWell() {
	p.t.Helper()
	for _, s := range p.sent {
		if out := p.answered(s); out.Problem != nil || out.Text != want(s.text) {
			p.t.Errorf("%q in %s ended with %q, %+v", s.text, s.Session, out.Text, out.Problem)
		}
	}
	p.quiet()
	for _, s := range p.sent {
		p.judgeCalls(s, false)
	}
}
