package client

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

func TestSendRefusesAnAppThatWasNeverServed(t *testing.T) {
	f := newFabric(t)
	_, err := f.Send(t.Context(), "helper", "", Text("hi"))
	wantCode(t, err, protocol.CodeUnknownApp)
	if !strings.Contains(err.Error(), "toolfabric up") {
		t.Errorf("the error does not say how to start one: %v", err)
	}
	_, err = f.SendCall(t.Context(), "hash", json.RawMessage(`{}`))
	wantCode(t, err, protocol.CodeUnknownApp)

	f.serve("helper")
	if _, err := f.Send(t.Context(), "helper", "", Text("hi")); err != nil {
		t.Fatal(err)
	}
}

func TestAnInputThatStartsASessionNamesIt(t *testing.T) {
	f := newFabric(t)
	f.serve("helper")
	first, err := f.Send(t.Context(), "helper", "", Text("hi"), WithInputID("one"), WithStateDelta(map[string]json.RawMessage{"k": json.RawMessage(`1`)}))
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Send(t.Context(), "helper", "", Text("hi"), WithInputID("one"))
	if err != nil {
		t.Fatal(err)
	}
	if first.Session != "one" || again.Session != "one" || first.Seq == 0 {
		t.Errorf("%+v, %+v", first, again)
	}
	in := f.inputs("helper")[0]
	if in.ID != "one" || in.Kind != protocol.InputMessage || string(in.StateDelta["k"]) != "1" || ContentText(in.Content) != "hi" {
		t.Errorf("%+v", in)
	}
}

func TestSendRefusesWhatItsReceiverWouldRefuse(t *testing.T) {
	f := newFabric(t)
	f.serve("helper")
	f.serve(protocol.CallsApp)
	_, err := f.Send(t.Context(), "a.b", "", Text("hi"))
	wantCode(t, err, protocol.CodeBadName)
	_, err = f.Send(t.Context(), "helper", "a.b", Text("hi"))
	wantCode(t, err, protocol.CodeBadID)
	_, err = f.Send(t.Context(), "helper", "", Text("hi"), WithInputID("*"))
	wantCode(t, err, protocol.CodeBadID)
	_, err = f.Send(t.Context(), "helper", "", Text(strings.Repeat("x", 2<<20)))
	wantCode(t, err, protocol.CodeTooLarge)
	_, err = f.SendCall(t.Context(), "hash", json.RawMessage(`{"a":1,"a":2}`))
	wantCode(t, err, protocol.CodeBadMessage)
	_, err = f.SendCall(t.Context(), "no name", json.RawMessage(`{}`))
	wantCode(t, err, protocol.CodeBadName)
	if n := len(f.inputs("helper")) + len(f.inputs(protocol.CallsApp)); n != 0 {
		t.Errorf("%d refused inputs were stored", n)
	}
}

func TestNewChecksItsConfig(t *testing.T) {
	f := newFabric(t)
	_, err := New(Config{})
	wantCode(t, err, protocol.CodeUsage)
	_, err = New(Config{Bus: f.conn, Names: f.conn.Names(), Client: "a.b"})
	wantCode(t, err, protocol.CodeBadID)
}
