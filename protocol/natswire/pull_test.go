package natswire

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
)

// pullFixture is a puller on a real server with two calls wanted, and what its owner heard.
type pullFixture struct {
	*puller
	conn *Conn
	came chan Delivery
	lost chan error
}

func newPullFixture(t *testing.T) *pullFixture {
	t.Helper()
	s, err := embed.Start(embed.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	c, err := Connect(t.Context(), Config{InProcess: s.InProcess()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := Provision(t.Context(), c, ProvisionConfig{}); err != nil {
		t.Fatal(err)
	}
	n := c.Names()
	durable := Consumer{Stream: n.Calls(), Durable: "tool", Filter: n.CallSubject("tool"), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1}
	if err := c.EnsureConsumer(t.Context(), durable); err != nil {
		t.Fatal(err)
	}
	f := &pullFixture{conn: c, came: make(chan Delivery, 16), lost: make(chan error, 4)}
	p, err := c.Pull(t.Context(), n.Calls(), "tool", PullEvents{
		Deliver: func(d Delivery) { f.came <- d }, Lost: func(err error) { f.lost <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	f.puller = p.(*puller)
	f.Want(2)
	return f
}

// says lets the broker say something about the current request.
func (f *pullFixture) says(status, description string, left int) {
	h := nats.Header{"Status": {status}, "Description": {description}}
	if left >= 0 {
		h["Nats-Pending-Messages"] = []string{strconv.Itoa(left)}
	}
	inbox, _, _ := f.now()
	f.receive(inbox, &nats.Msg{Subject: inbox + "1", Header: h})
}

func (f *pullFixture) now() (inbox string, requests uint64, asked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inbox, f.request, f.asked
}

// two says that exactly the two wanted calls come, of three.
func (f *pullFixture) two(t *testing.T) {
	t.Helper()
	for range 3 {
		if _, err := f.conn.Publish(t.Context(), Msg{Subject: f.conn.names.CallSubject("tool"), Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		select {
		case d := <-f.came:
			d.Ack()
		case <-time.After(2 * time.Minute):
			t.Fatal("a wanted call did not come")
		}
	}
	// The third one stays with the broker; it may have gone to the inbox that was just left, and is then given back.
	look, end := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
	defer look.Stop()
	for {
		state, err := f.conn.ConsumerState(t.Context(), "CALLS", "tool")
		if err != nil {
			t.Fatal(err)
		}
		if len(f.came) != 0 {
			t.Fatal("an unwanted call came")
		}
		if int(state.Pending)+state.AckPending == 1 {
			return
		}
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("%d pending and %d in flight, want one of both together", state.Pending, state.AckPending)
		}
	}
}

func TestExpiredRequestIsRenewed(t *testing.T) {
	f := newPullFixture(t)
	f.resync() // so that the broker's real request is gone, as if it had expired
	inbox, before, _ := f.now()
	f.mu.Lock()
	f.leave()
	if err := f.listen(); err != nil {
		t.Fatal(err)
	}
	f.mu.Unlock()
	f.says("408", "Request Timeout", 2)
	after, requests, asked := f.now()
	if requests != before+1 || asked != 2 || after == inbox {
		t.Fatalf("%d requests after %d, %d asked for", requests, before, asked)
	}
	f.two(t)
}

func TestHeartbeatChangesNothing(t *testing.T) {
	f := newPullFixture(t)
	inbox, requests, asked := f.now()
	f.says("100", "Idle Heartbeat", -1)
	if i, r, a := f.now(); i != inbox || r != requests || a != asked {
		t.Fatal("a heartbeat made it ask again")
	}
	f.two(t)
}

func TestSilenceMovesToANewInbox(t *testing.T) {
	f := newPullFixture(t)
	inbox, _, _ := f.now()
	f.listenForSilence()
	if now, _, _ := f.now(); now != inbox {
		t.Fatal("it moved although the broker had just been heard")
	}
	f.mu.Lock()
	f.heard = time.Now().Add(-time.Hour)
	f.mu.Unlock()
	f.listenForSilence()
	if now, _, asked := f.now(); now == inbox || asked != 2 {
		t.Fatalf("inbox %s, %d asked for", now, asked)
	}
	f.two(t)
}

func TestNewLeaderIsAskedAgain(t *testing.T) {
	for _, said := range []string{"Leadership Change", "Server Shutdown", "A Word Of Tomorrow"} {
		t.Run(said, func(t *testing.T) {
			f := newPullFixture(t)
			inbox, _, _ := f.now()
			f.says("409", said, -1)
			look, end := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
			defer look.Stop()
			for {
				if now, _, asked := f.now(); now != inbox && asked == 2 {
					break
				}
				select {
				case <-look.C:
				case <-end:
					t.Fatal("it did not ask again")
				}
			}
			f.two(t)
		})
	}
}

func TestDeletedConsumerEndsTheSubscriptionOnce(t *testing.T) {
	f := newPullFixture(t)
	f.says("409", "Consumer Deleted", -1)
	f.says("409", "Consumer Deleted", -1)
	select {
	case err := <-f.lost:
		if protocol.CodeOf(err) != protocol.CodeConsumerGone {
			t.Fatalf("got %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("nobody told")
	}
	f.conn.Close()
	if len(f.lost) != 0 {
		t.Fatal("the owner was told twice")
	}
}

// Many slots that free themselves one by one cost far fewer requests than messages.
func TestWantsAreCoalesced(t *testing.T) {
	f := newPullFixture(t)
	f.Want(62)
	_, before, _ := f.now()
	const calls = 320
	for range calls {
		if _, err := f.conn.Publish(t.Context(), Msg{Subject: f.conn.names.CallSubject("tool"), Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		select {
		case d := <-f.came:
			d.Ack()
			f.Want(1)
		case <-time.After(2 * time.Minute):
			t.Fatal("a wanted call did not come")
		}
	}
	if _, after, _ := f.now(); after-before > calls/16 {
		t.Fatalf("%d requests for %d calls", after-before, calls)
	}
}
