package natswire_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

func plainJetStream(t *testing.T, s *natstest.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// The golden file is what an operator gets: a setting that changes here changes for everybody who provisions again.
func TestStreamsAreAsWritten(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "dev")
	js := plainJetStream(t, s)
	var b strings.Builder
	for _, name := range c.Names().Streams() {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := stream.CachedInfo().Config
		cfg.Metadata = nil // the server's version
		text, err := json.MarshalIndent(cfg, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	golden(t, "streams.golden", b.String())
}

func TestProvisionersDoNotFailEachOther(t *testing.T) {
	s := natstest.Start(t)
	var provisioning sync.WaitGroup
	for range 8 {
		c := s.Dial(t, natswire.Config{})
		provisioning.Go(func() {
			for range 2 {
				if err := natswire.Provision(t.Context(), c, natswire.ProvisionConfig{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	provisioning.Wait()
	for _, queue := range []string{"CALLS", "INPUT", "TIMERS"} {
		stream, err := plainJetStream(t, s).Stream(t.Context(), queue)
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().State.Msgs; got != 1 {
			t.Errorf("%d sentinels in %s", got, queue)
		}
	}
}

func TestProvisionKeepsTheOperatorsLimits(t *testing.T) {
	s := natstest.Start(t)
	c := s.Dial(t, natswire.Config{})
	for _, cfg := range []natswire.ProvisionConfig{{MaxBytes: 1 << 20}, {}} {
		if err := natswire.Provision(t.Context(), c, cfg); err != nil {
			t.Fatal(err)
		}
	}
	input, err := plainJetStream(t, s).Stream(t.Context(), "INPUT")
	if err != nil {
		t.Fatal(err)
	}
	if got := input.CachedInfo().Config.MaxBytes; got != 1<<20 {
		t.Fatalf("max_bytes is %d", got)
	}
}

func TestIncompatibleStreamIsNamedWithItsSetting(t *testing.T) {
	for setting, have := range map[string]jetstream.StreamConfig{
		"retention":     {Name: "CALLS", Subjects: []string{"tf.call.*"}},
		"storage":       {Name: "LOG", Subjects: []string{"tf.log.*.*"}, Storage: jetstream.MemoryStorage, MaxConsumers: -1},
		"max_consumers": {Name: "REG", Subjects: []string{"tf.reg.*.*"}, MaxConsumers: 7},
	} {
		t.Run(setting, func(t *testing.T) {
			s := natstest.Start(t)
			if _, err := plainJetStream(t, s).CreateStream(t.Context(), have); err != nil {
				t.Fatal(err)
			}
			err := natswire.Provision(t.Context(), s.Dial(t, natswire.Config{}), natswire.ProvisionConfig{})
			wantCode(t, err, protocol.CodeUnsupported, have.Name, setting)
		})
	}
}

func TestNamespacesSeeNothingOfEachOther(t *testing.T) {
	s := natstest.Start(t)
	one, two := s.Connect(t, "one"), s.Connect(t, "two")
	if _, err := one.Publish(t.Context(), natswire.Msg{Subject: one.Names().LogSubject("app", "s"), Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	_, err := two.Last(t.Context(), two.Names().Log(), two.Names().LogSubject("app", "s"))
	wantCode(t, err, protocol.CodeNotFound)
	if err := one.PutObject(t.Context(), "o", []byte("x")); err != nil {
		t.Fatal(err)
	}
	_, err = two.GetObject(t.Context(), "o")
	wantCode(t, err, protocol.CodeNotFound)
}

// Objects are those of NATS: its own tools read them.
func TestObjectsAreReadByOthers(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	data := make([]byte, 300<<10)
	data[len(data)-1] = 1
	if err := c.PutObject(t.Context(), "a name/x", data); err != nil {
		t.Fatal(err)
	}
	store, err := plainJetStream(t, s).ObjectStore(t.Context(), c.Names().Objects())
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.GetBytes(t.Context(), "a name/x")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(data) {
		t.Fatal("the library read something else")
	}
	if _, err := store.PutBytes(t.Context(), "theirs", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	back, err := c.GetObject(t.Context(), "theirs")
	if err != nil || string(back) != "hello" {
		t.Fatalf("got %q, %v", back, err)
	}
	if err := store.Delete(t.Context(), "theirs"); err != nil {
		t.Fatal(err)
	}
	_, err = c.GetObject(t.Context(), "theirs")
	wantCode(t, err, protocol.CodeNotFound, "deleted")
}

func TestDamagedObjectIsNotFound(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	if err := c.PutObject(t.Context(), "o", make([]byte, 300<<10)); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(t.Context(), c.Names().ObjectStream(), 2); err != nil {
		t.Fatal(err)
	}
	_, err := c.GetObject(t.Context(), "o")
	wantCode(t, err, protocol.CodeNotFound)
	// Storing it again mends it.
	if err := c.PutObject(t.Context(), "o", make([]byte, 300<<10)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetObject(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
}

// The bucket of tools is a KV bucket of NATS.
func TestToolsAreABucket(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	if _, err := c.Publish(t.Context(), natswire.Msg{Subject: c.Names().ToolSubject("tool", "digest"), Data: []byte("declaration")}); err != nil {
		t.Fatal(err)
	}
	bucket, err := plainJetStream(t, s).KeyValue(t.Context(), c.Names().Tools())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := bucket.Get(t.Context(), "tool.digest")
	if err != nil || string(entry.Value()) != "declaration" {
		t.Fatalf("got %v, %v", entry, err)
	}
}

// A sentinel follows what is stored in its queue, whoever else keeps it, and lets a queue at rest be.
func TestASentinelFollowsItsQueue(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	n := c.Names()
	last := func() natswire.Stored {
		t.Helper()
		m, err := c.Last(t.Context(), n.Input(), n.InputSubject("0", "0", "0"))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := last()
	ctx, stop := context.WithCancel(t.Context())
	var keeping sync.WaitGroup
	for range 2 {
		keeping.Go(func() {
			if err := c.KeepSentinels(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	defer keeping.Wait()
	defer stop()
	moved := func(from uint64) uint64 {
		t.Helper()
		ack, err := c.Publish(t.Context(), natswire.Msg{Subject: n.InputSubject("app", "me", "s"), Data: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		for {
			switch m := last(); {
			case m.Seq > ack.Seq:
				return m.Seq
			case m.Seq != from:
				t.Fatalf("the sentinel at %d went to %d, before message %d", from, m.Seq, ack.Seq)
			}
			if err := natswire.Sleep(t.Context(), natswire.SystemClock{}, 20*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
	}
	from := moved(first.Seq)
	moved(from)
	for { // two and one sentinel, whatever stood there meanwhile
		state, err := c.StreamState(t.Context(), n.Input())
		if err != nil {
			t.Fatal(err)
		}
		if state.Messages == 3 {
			break
		}
		if err := natswire.Sleep(t.Context(), natswire.SystemClock{}, 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if calls, err := c.StreamState(t.Context(), n.Calls()); err != nil || calls.LastSeq != 1 {
		t.Errorf("the sentinel of a queue at rest went to %d, %v", calls.LastSeq, err)
	}
}
