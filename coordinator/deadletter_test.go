package coordinator_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func TestInputThatCannotBeReadIsBuriedWhateverItsSize(t *testing.T) {
	for name, data := range map[string][]byte{
		"small": []byte(`{"v":1,`),
		"large": bytes.Repeat([]byte{'['}, 1<<20-100),
		"kind":  []byte(`{"v":1,"id":"a","kind":"` + string(bytes.Repeat([]byte{'x'}, 1<<20-200)) + `"}`),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				f.start("c1", coordinator.Config{})
				f.publish(natswire.Msg{Subject: f.names.InputSubject(protocol.CallsApp, "me", "s1"), Data: data})
				f.pass(time.Second)
				if left := f.w.Messages(f.names.Input()); len(left) != 0 {
					t.Errorf("%d inputs are left", len(left))
				}
				var found []protocol.DeadLetter
				for _, m := range f.w.Messages(f.names.DeadLetters()) {
					if l, err := strictLetter(m.Data); err == nil && l.Code != "" { // the others are the broker's advisories
						found = append(found, l)
					}
				}
				if len(found) != 1 {
					t.Fatalf("%d dead letters", len(found))
				}
				l := found[0]
				if l.Code != protocol.CodeBadMessage || !bytes.HasPrefix(data, l.Data) || len(l.Data) < min(len(data), 256<<10) {
					t.Errorf("%s: %s, %d of %d bytes", l.Code, l.Reason, len(l.Data), len(data))
				}
			})
		})
	}
}

// A worker that is only paused is not called dead: nobody can know.
func TestCallThatNobodySettlesIsSaidToBeOfASilentWorker(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		f.start("c1", coordinator.Config{})
		d := declaration("echo", "Says it again.")
		f.beat("w1", d)
		f.pass(time.Second)
		puller, err := f.client.Pull(t.Context(), f.names.Calls(), "echo", natswire.PullEvents{Deliver: func(natswire.Delivery) {}, Lost: func(error) {}})
		if err != nil {
			t.Fatal(err)
		}
		defer puller.Close()
		puller.Want(8)
		env := protocol.Envelope{V: protocol.Version, App: "helper", Session: "s1", Call: "call-1", Tool: "echo", Digest: d.Digest(),
			Effect: protocol.EffectRead, Args: []byte(`{}`), AnswersTo: protocol.MailboxResults}
		data, err := protocol.Encode(env)
		if err != nil {
			t.Fatal(err)
		}
		f.publish(natswire.Msg{Subject: f.names.CallSubject("echo"), Data: data})
		mailbox := f.names.ResultSubject("echo", "s1", "call-1", 0)
		var stored natswire.Stored
		f.until(time.Minute, "the end of the call", func() bool {
			stored, err = f.client.Last(t.Context(), f.names.Results(), mailbox)
			return err == nil
		})
		r, err := protocol.DecodeResult(stored.Data)
		if err != nil || r.Code != protocol.CodePoison || !strings.Contains(string(r.Value), "died or fell silent each time") {
			t.Errorf("%v, %s %s", err, r.Code, r.Value)
		}
	})
}
