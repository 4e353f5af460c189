package badinput

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/tests/natstest"
)

// attacks are headers that mean something to the broker, each sent by whoever may publish on the subject.
var attacks = []struct {
	name    string
	headers []string
}{
	{"wipe the stream", []string{"Nats-Rollup", "all"}},
	{"wipe the subject", []string{"Nats-Rollup", "sub"}},
	{"write elsewhere by a schedule", []string{"Nats-Schedule", "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target", "tf.log.house.stolen"}},
	{"write elsewhere every second", []string{"Nats-Schedule", "@every 1s", "Nats-Schedule-Target", "tf.log.house.stolen"}},
	{"copy another subject", []string{"Nats-Schedule", "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target", "tf.log.house.stolen", "Nats-Schedule-Source", "tf.log.house.s"}},
	{"delete a timer", []string{"Nats-Scheduler", "tf.timer.house.s.g", "Nats-Schedule-Next", "purge"}},
	{"vanish", []string{"Nats-TTL", "1s"}},
	{"stay for ever", []string{"Nats-TTL", "never"}},
	{"count", []string{"Nats-Incr", "1"}},
	{"begin a batch", []string{"Nats-Batch-Id", "b", "Nats-Batch-Sequence", "1"}},
	{"expect another stream", []string{"Nats-Expected-Stream", "LOG"}},
	{"take a message id", []string{"Nats-Msg-Id", "victim"}},
	{"take it again", []string{"Nats-Msg-Id", "victim"}},
}

func TestHeadersOfTheBrokerAreNoWeapon(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natstest.Auth(roles))
	f := newFabricOn(t, s, everybody, nil)
	n := f.names
	// What others stored, and must still be there at the end.
	victims := map[string]string{
		n.InputSubject("ghost", "tester", "s"):  n.Input(),
		n.ResultSubject("slow", "s", "c", 0):    n.Results(),
		n.ResultSubject("add", "s", "c", 0):     n.Results(),
		n.RegistrationSubject("slow", "w-slow"): n.Registry(),
		n.LogSubject("house", "s"):              n.Log(),
		n.TimerSubject("house", "s", "g") + "":  n.Timers(),
	}
	operator, err := nats.Connect(as(s, "operator"), nats.CustomInboxPrefix(inbox("operator")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Close)
	for subject := range victims {
		by := *f
		by.mallory = operator
		headers := []string(nil)
		if strings.HasPrefix(subject, "tf.timer.") {
			headers = []string{"Nats-Schedule", "@at " + time.Now().Add(time.Hour).Format(time.RFC3339), "Nats-Schedule-Target", n.DueSubject("house", "s")}
		}
		by.store(subject, []byte(`{"v":1,"stop":{"kind":"done"}}`), headers...)
	}
	var b strings.Builder
	for _, from := range []struct{ user, subject string }{
		{"mallory", "tf.input.ghost.mallory.s%d"},
		{"w_add", "tf.result.add.s.c%d.0"},
		{"w_add", "tf.claim.add.c%d.0"},
		{"w_add", "tf.reg.add.w-add"},
		{"w_add", "tf.dlq.call.c%d"},
	} {
		conn, err := nats.Connect(as(s, from.user), nats.CustomInboxPrefix(inbox(from.user)))
		if err != nil {
			t.Fatal(err)
		}
		by := *f
		by.mallory = conn
		fmt.Fprintf(&b, "# %s on %s\n", from.user, strings.ReplaceAll(from.subject, "%d", "N"))
		for i, a := range attacks {
			subject := from.subject
			if strings.Contains(subject, "%d") {
				subject = fmt.Sprintf(subject, i)
			}
			ack, err := by.publish(subject, []byte("{}"), a.headers...)
			switch {
			case err != nil:
				fmt.Fprintf(&b, "%s: %v\n", a.name, err)
			case ack.Duplicate:
				fmt.Fprintf(&b, "%s: its own duplicate\n", a.name)
			default:
				fmt.Fprintf(&b, "%s: stored, as its own message\n", a.name)
			}
		}
		conn.Close()
	}
	for subject, stream := range victims {
		if _, err := f.conn.Last(t.Context(), stream, subject); err != nil {
			t.Errorf("%s is gone: %v", subject, err)
		}
	}
	if m, err := f.conn.Last(t.Context(), n.Log(), n.LogSubject("house", "stolen")); err == nil {
		t.Errorf("a forged log holds %s", m.Data)
	}
	f.nothingLost()
	golden(t, "header", b.String())
}
