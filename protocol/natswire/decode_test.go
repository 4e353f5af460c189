package natswire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestAckReplyIsReadInBothForms(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := ackReply{attempt: 3, seq: 42, time: at}
	for _, s := range []string{
		fmt.Sprintf("$JS.ACK.CALLS.tool.3.42.7.%d.9", at.UnixNano()),
		fmt.Sprintf("$JS.ACK._.ACCHASH.CALLS.tool.3.42.7.%d.9", at.UnixNano()),
		fmt.Sprintf("$JS.ACK.hub.ACCHASH.CALLS.tool.3.42.7.%d.9.random", at.UnixNano()),
		fmt.Sprintf("$JS.ACK.hub.ACCHASH.CALLS.tool.3.42.7.%d.9.random.more.yet", at.UnixNano()),
	} {
		if got, ok := parseAckReply(s); !ok || got != want {
			t.Errorf("%s: got %+v, %v", s, got, ok)
		}
	}
	for _, s := range []string{
		"", "$JS.ACK.", "$JS.ACK.CALLS.tool.3.42.7.8", "$JS.ACK.CALLS.tool.3.42.7.8.9.10", "$JS.ACK.CALLS.tool.0.42.7.8.9",
		"$JS.ACK.CALLS.tool.x.42.7.8.9", "$JS.ACK.CALLS.tool.3.-42.7.8.9", "$JS.API.CALLS.tool.3.42.7.8.9",
		"$JS.ACK.CALLS.tool.3.42.7.99999999999999999999.9", "$JS.ACK.CALLS.tool.99999999999.42.7.8.9",
	} {
		if got, ok := parseAckReply(s); ok {
			t.Errorf("%q was read as %+v", s, got)
		}
	}
}

func FuzzAckReply(f *testing.F) {
	f.Add("$JS.ACK.CALLS.tool.3.42.7.1700000000000000000.9")
	f.Add("$JS.ACK.hub.HASH.CALLS.tool.3.42.7.1700000000000000000.9.random")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseAckReply(s)
		if !ok {
			return
		}
		if got.attempt < 1 || got.seq == 0 {
			t.Fatalf("%q was read as %+v", s, got)
		}
		again := fmt.Sprintf("$JS.ACK.S.C.%d.%d.1.%d.0", got.attempt, got.seq, got.time.UnixNano())
		if back, ok := parseAckReply(again); !ok || back != got {
			t.Fatalf("%q was read as %+v, and its rewriting as %+v", s, got, back)
		}
	})
}

// The scanner may leave an ack to the decoder, but must never read one otherwise.
func FuzzScanAck(f *testing.F) {
	for _, s := range []string{
		`{"stream":"CALLS","seq":12}`, `{"stream":"CALLS","seq":12,"duplicate":true}`, `{"stream":"CALLS","domain":"d","seq":12}`,
		`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"CALLS","seq":0}`,
		`{"stream":"a","seq":1}x`, `{"stream":"a\"","seq":1}`, `{"stream":"a","seq":01}`, `{"stream":"","seq":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := scanAck(data)
		if !ok {
			return
		}
		var want struct {
			Error     json.RawMessage `json:"error"`
			Stream    string          `json:"stream"`
			Seq       uint64          `json:"seq"`
			Duplicate bool            `json:"duplicate"`
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q is no JSON, and was read as %+v", data, got)
		}
		if want.Error != nil || want.Stream == "" || want.Seq != got.Seq || want.Duplicate != got.Duplicate {
			t.Fatalf("%q was read as %+v", data, got)
		}
	})
}

func TestServerVersionIsCompared(t *testing.T) {
	for version, want := range map[string]bool{
		"2.14.4": true, "2.14.5": true, "2.15.0": true, "2.15.3-RC.1": true, "3.0.0": true, "2.14.10": true, "dev": true,
		"2.14.3": false, "2.14.4-RC.1": false, "2.10.22": false, "1.99.99": false, "2.9.25": false,
	} {
		if got := newEnough(version); got != want {
			t.Errorf("%s: got %v, want %v", version, got, want)
		}
	}
}

func TestViolationIsRead(t *testing.T) {
	for text, want := range map[string]violation{
		`Permissions Violation for Publish to "tf.call.x"`:                            {subject: "tf.call.x"},
		`permissions violation for subscription to "tf.>"`:                            {subject: "tf.>", subscribe: true},
		`Permissions Violation for Subscription to "tf.>" using queue "q"`:            {subject: "tf.>", subscribe: true},
		`Permissions Violation for Publish with Reply of "_INBOX.a.b" to "tf.call.x"`: {subject: "_INBOX.a.b", reply: true},
	} {
		got, ok := parseViolation(fmt.Errorf("%w: %s", nats.ErrPermissionViolation, text))
		if !ok || got != want {
			t.Errorf("%s: got %+v, %v", text, got, ok)
		}
	}
	if v, ok := parseViolation(errors.New(`Permissions Violation for Publish to "x"`)); ok {
		t.Errorf("another error was read as %+v", v)
	}
}

func TestReplyTokensComeBack(t *testing.T) {
	r := newReplies("_INBOX.x.")
	for _, id := range []uint64{1, 35, 36, 61, 62, 63, 3843, 3844, 1 << 40, 1<<63 + 12345} {
		subject := r.subject(id)
		if got, ok := r.id(subject); !ok || got != id {
			t.Errorf("%d became %s became %d", id, subject, got)
		}
	}
	for _, s := range []string{"", "_INBOX.x.", "_INBOX.y.1", "_INBOX.x.a.b", "_INBOX.x." + strings.Repeat("a", 12), "_INBOX.x.-"} {
		if id, ok := r.id(s); ok {
			t.Errorf("%q was read as %d", s, id)
		}
	}
}
