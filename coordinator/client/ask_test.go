package client

import (
	"context"
	"slices"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// quick is a bus on which a coordinator speaks before whoever sends an input hears that it is stored.
type quick struct {
	natswire.Bus
	speaks func(in protocol.Input)
}

func (q quick) Publish(ctx context.Context, m natswire.Msg) (natswire.Ack, error) {
	ack, err := q.Bus.Publish(ctx, m)
	if in, derr := protocol.DecodeInput(m.Data); err == nil && derr == nil {
		q.speaks(in)
	}
	return ack, err
}

func TestAskMissesNoWordOfTheAnswer(t *testing.T) {
	f := newFabric(t)
	f.serve("helper")
	n := f.conn.Names()
	emit := func(session, epoch, text string) {
		if err := f.conn.Emit(t.Context(), natswire.Msg{Subject: n.TokenSubject(session, epoch), Data: encode(t, protocol.Token{Turn: 1, Text: text})}); err != nil {
			t.Error(err)
		}
	}
	c, err := New(Config{Bus: quick{f.conn, func(in protocol.Input) {
		emit("s1", "6", "of another run")
		emit("s1", "7", "hel")
		f.append("helper", "s1", protocol.Event{Epoch: 7, Adopt: &protocol.Adopt{Coordinator: "c", Adoption: "a"}, Inputs: []protocol.FoldedInput{{ID: in.ID, Kind: in.Kind}}})
		emit("s1", "7", "lo")
	}}, Names: n, Client: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	var stored Receipt
	for u, err := range c.Ask(soon(t), "helper", "s1", Text("hi"), func(r Receipt) { stored = r }, WithInputID("in-1")) {
		if err != nil {
			t.Fatal(err)
		}
		if u.Token != nil {
			if said = append(said, u.Token.Text); len(said) == 2 {
				f.append("helper", "s1", protocol.Event{Epoch: 7, Turn: says("hello"), Stop: done()})
			}
		}
	}
	if !slices.Equal(said, []string{"hel", "lo"}) || stored.InputID != "in-1" || stored.Seq == 0 {
		t.Errorf("said %q of %+v", said, stored)
	}
}

func TestAskTellsWhatSendRefuses(t *testing.T) {
	f := newFabric(t)
	for _, c := range []struct {
		app, session string
		code         protocol.Code
	}{{"nobody", "s1", protocol.CodeUnknownApp}, {"a b", "s1", protocol.CodeBadName}, {"helper", "s 1", protocol.CodeBadID}} {
		n := 0
		for _, err := range f.Ask(soon(t), c.app, c.session, Text("hi"), func(Receipt) { t.Error("it is stored") }) {
			n++
			wantCode(t, err, c.code)
		}
		if n != 1 {
			t.Errorf("%d updates", n)
		}
	}
}
