package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

// answerCalls plays a coordinator for one call: turn and answers are what it decides.
func answerCall(t *testing.T, f *fabric, turn protocol.Call, answer *protocol.Result) (protocol.Result, error) {
	t.Helper()
	f.serve(protocol.CallsApp)
	receipt, err := f.SendCall(t.Context(), turn.Tool, json.RawMessage(`{"n":1}`), WithInputID("in"))
	if err != nil {
		t.Fatal(err)
	}
	f.append(receipt.App, receipt.Session, protocol.Event{
		Inputs: []protocol.FoldedInput{{ID: "in", Kind: protocol.InputCall}}, Turn: &protocol.Turn{Calls: []protocol.Call{turn}},
	})
	end := protocol.Event{Stop: done()}
	if answer != nil {
		end.Answers = []protocol.Answer{{Call: turn.ID, Result: *answer}}
	}
	f.append(receipt.App, receipt.Session, end)
	out, err := f.Wait(soon(t), receipt.App, receipt.Session, receipt.InputID)
	if err != nil {
		t.Fatal(err)
	}
	return CallResult(out)
}

func TestACallThatEndedIsAResult(t *testing.T) {
	f := newFabric(t)
	r, err := answerCall(t, f, protocol.Call{ID: "c1", Tool: "hash", Verdict: protocol.VerdictRun},
		&protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeFailed, Value: json.RawMessage(`{"error":"disk gone"}`)})
	if err != nil || r.Outcome != protocol.OutcomeFailed || string(r.Value) != `{"error":"disk gone"}` {
		t.Errorf("%+v, %v", r, err)
	}
	if in := f.inputs(protocol.CallsApp)[0]; in.Call == nil || in.Call.Tool != "hash" || string(in.Call.Args) != `{"n":1}` {
		t.Errorf("input %+v", in)
	}
}

func TestARefusedCallIsAnError(t *testing.T) {
	refusal := protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeFailed, Code: protocol.CodeSchemaViolation, Value: protocol.ErrorValue("/n: too small")}
	_, err := answerCall(t, newFabric(t), protocol.Call{ID: "c1", Tool: "hash", Verdict: protocol.VerdictRefuse, Refusal: &refusal}, &refusal)
	wantCode(t, err, protocol.CodeSchemaViolation)
	if got := protocol.ProblemOf(err).Message; got != "/n: too small" {
		t.Errorf("message %q", got)
	}
}

func TestACallWithoutAnswerIsAnError(t *testing.T) {
	_, err := answerCall(t, newFabric(t), protocol.Call{ID: "c1", Tool: "hash", Verdict: protocol.VerdictRun}, nil)
	wantCode(t, err, protocol.CodeInternal)
}

func TestBodyIsVerified(t *testing.T) {
	f := newFabric(t)
	body := []byte(`{"result":"long"}`)
	sum := sha256.Sum256(body)
	ref := protocol.Ref{Name: hex.EncodeToString(sum[:]), SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body))}
	_, err := f.Body(t.Context(), ref)
	wantCode(t, err, protocol.CodeNotFound)
	if err := f.conn.PutObject(t.Context(), ref.Name, body); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Body(t.Context(), ref); err != nil || string(got) != string(body) {
		t.Errorf("%s, %v", got, err)
	}
	ref.SHA256 = hex.EncodeToString(make([]byte, 32))
	_, err = f.Body(t.Context(), ref)
	wantCode(t, err, protocol.CodeBadMessage)
}
