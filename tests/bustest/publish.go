package bustest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func appendIsFenced(k *kit) {
	log := k.n.LogSubject("app", "s1")
	first := k.publish(natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("1")})
	k.publish(natswire.Msg{Subject: k.n.LogSubject("app", "s2"), Expect: seq(0), Data: []byte("other")})
	k.publishFails(natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("x")}, protocol.CodeFenced)
	second := k.publish(natswire.Msg{Subject: log, Expect: seq(first.Seq), Data: []byte("2")})
	k.publishFails(natswire.Msg{Subject: log, Expect: seq(first.Seq), Data: []byte("x")}, protocol.CodeFenced)
	k.publishFails(natswire.Msg{Subject: log, Expect: seq(second.Seq + 5), Data: []byte("x")}, protocol.CodeFenced)

	var wins, fences int
	var mu sync.Mutex
	var racers sync.WaitGroup
	for range 16 {
		racers.Go(func() {
			_, err := k.bus.Publish(k.Context(), natswire.Msg{Subject: log, Expect: seq(second.Seq), Data: []byte("race")})
			mu.Lock()
			defer mu.Unlock()
			switch protocol.CodeOf(err) {
			case "":
				wins++
			case protocol.CodeFenced:
				fences++
			default:
				k.Errorf("a racer got %v", err)
			}
		})
	}
	racers.Wait()
	if wins != 1 || fences != 15 {
		k.Fatalf("%d won and %d were fenced, want 1 and 15", wins, fences)
	}
	last, err := k.bus.Last(k.Context(), k.n.Log(), log)
	k.check(err)
	if string(last.Data) != "race" {
		k.Fatalf("the last message is %q", last.Data)
	}
}

func sendTells(k *kit) {
	type outcome struct {
		ack natswire.Ack
		err error
	}
	send := func(m natswire.Msg) outcome {
		told := make(chan outcome, 1)
		k.bus.Send(m, func(ack natswire.Ack, err error) { told <- outcome{ack, err} })
		return <-told
	}
	log := k.n.LogSubject("app", "s1")
	first := send(natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("1")})
	k.check(first.err)
	last, err := k.bus.Last(k.Context(), k.n.Log(), log)
	k.check(err)
	if last.Seq != first.ack.Seq {
		k.Errorf("stored at %d, told %d", last.Seq, first.ack.Seq)
	}
	for _, c := range []struct {
		m    natswire.Msg
		code protocol.Code
	}{
		{natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("x")}, protocol.CodeFenced},
		{natswire.Msg{Subject: log, Data: make([]byte, 2<<20)}, protocol.CodeTooLarge},
		{natswire.Msg{Subject: k.n.Namespace() + ".nobody", Data: []byte("x")}, protocol.CodeUnreachable},
	} {
		if o := send(c.m); protocol.CodeOf(o.err) != c.code {
			k.Errorf("%s: %v, want code %s", c.m.Subject, o.err, c.code)
		}
	}
}

func mailboxTakesTheFirst(k *kit) {
	result := k.n.ResultSubject("tool", "s1", "c1", 0)
	k.publish(natswire.Msg{Subject: result, Data: []byte("first")})
	k.publishFails(natswire.Msg{Subject: result, Data: []byte("second")}, protocol.CodeAnswered)
	k.publish(natswire.Msg{Subject: k.n.ResultSubject("tool", "s1", "c1", 1), Data: []byte("next round")})
	last, err := k.bus.Last(k.Context(), k.n.Results(), result)
	k.check(err)
	if string(last.Data) != "first" {
		k.Fatalf("the mailbox holds %q", last.Data)
	}
}

func repeatIsDuplicate(k *kit) {
	call := natswire.Msg{Subject: k.n.CallSubject("tool"), ID: "c1.0", Data: []byte("call")}
	first := k.publish(call)
	if first.Duplicate {
		k.Fatal("the first is called a duplicate")
	}
	again := k.publish(call)
	if !again.Duplicate || again.Seq != first.Seq {
		k.Fatalf("the repeat got %+v, want a duplicate of %d", again, first.Seq)
	}
	// The window is the stream's, not the subject's.
	other := k.publish(natswire.Msg{Subject: k.n.CallSubject("other"), ID: "c1.0", Data: []byte("call")})
	if !other.Duplicate {
		k.Fatal("the same id on another subject of the stream was stored")
	}
	k.publish(natswire.Msg{Subject: k.n.CallSubject("tool"), ID: "c2.0", Data: []byte("call")})
}

func duplicateBeforeMailbox(k *kit) {
	claim := natswire.Msg{Subject: k.n.ClaimSubject("tool", "c1", 0), ID: "mine", Data: []byte("claim")}
	k.publish(claim)
	if again := k.publish(claim); !again.Duplicate {
		k.Fatal("a repeated claim is mine, but was not called a duplicate")
	}
	claim.ID = "theirs"
	k.publishFails(claim, protocol.CodeAnswered)
}

func resultsAreRepublished(k *kit) {
	came := k.subscribe(k.n.DoneSubject("s1"))
	result := k.n.ResultSubject("tool", "s1", "c1", 0)
	forged := natswire.Header{"traceparent": "00-1-2-01", "Nats-Subject": k.n.ResultSubject("safe", "s1", "c5", 0), "Nats-Sequence": "77"}
	ack := k.publish(natswire.Msg{Subject: result, Header: forged, Data: []byte("first")})
	k.publishFails(natswire.Msg{Subject: result, Data: []byte("second")}, protocol.CodeAnswered)
	k.publish(natswire.Msg{Subject: k.n.ClaimSubject("tool", "c1", 0), Data: []byte("claim")})
	k.publish(natswire.Msg{Subject: k.n.ResultSubject("tool", "s2", "c9", 0), Data: []byte("another session's")})
	k.publish(natswire.Msg{Subject: k.n.ResultSubject("tool", "s1", "c2", 3), Data: []byte("last")})

	m := k.receive(came)
	session, tool, call, round, ok := k.n.ParseDone(m)
	if !ok || session != "s1" || tool != "tool" || call != "c1" || round != 0 || string(m.Data) != "first" {
		k.Fatalf("got %s %q", m.Subject, m.Data)
	}
	if got := m.Header.Get("traceparent"); got != "00-1-2-01" {
		k.Fatalf("traceparent is %q", got)
	}
	if got := natswire.StoredSeq(m.Header); got != ack.Seq {
		k.Fatalf("the republished message names sequence %d, want %d", got, ack.Seq)
	}
	// Neither the refused twin, nor the claim, nor another session's.
	if m := k.receive(came); string(m.Data) != "last" {
		k.Fatalf("got %s %q next", m.Subject, m.Data)
	}
}

func logIsRepublished(k *kit) {
	came := k.subscribe(k.n.LiveSubject("app", "s1"))
	log := k.n.LogSubject("app", "s1")
	ack := k.publish(natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("1")})
	k.publishFails(natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("x")}, protocol.CodeFenced)
	k.publish(natswire.Msg{Subject: log, Expect: seq(ack.Seq), Data: []byte("2")})
	for _, want := range []string{"1", "2"} {
		if m := k.receive(came); string(m.Data) != want {
			k.Fatalf("got %q, want %q", m.Data, want)
		}
	}
}

func oversizeIsRefused(k *kit) {
	k.publish(natswire.Msg{Subject: k.n.CallSubject("tool"), Data: bytes.Repeat([]byte("x"), 1<<20)})
	k.publishFails(natswire.Msg{Subject: k.n.CallSubject("tool"), Data: bytes.Repeat([]byte("x"), 1<<20+1)}, protocol.CodeTooLarge)
	h := natswire.Header{"big": strings.Repeat("x", 600<<10)}
	k.publishFails(natswire.Msg{Subject: k.n.CallSubject("tool"), Header: h, Data: bytes.Repeat([]byte("x"), 600<<10)}, protocol.CodeTooLarge)
	k.wantCode(k.bus.Emit(k.Context(), natswire.Msg{Subject: k.n.OwnSubject("c"), Data: bytes.Repeat([]byte("x"), 1<<20+1)}), protocol.CodeTooLarge)
}

func requestIsAnswered(k *kit) {
	own := k.n.OwnSubject("coordinator")
	stop, err := k.bus.Subscribe(own, func(m natswire.Msg) {
		reply := natswire.Msg{Subject: m.Reply, Header: natswire.Header{"kind": "answer"}, Data: append([]byte("re: "), m.Data...)}
		if err := k.bus.Emit(context.Background(), reply); err != nil {
			k.Error(err)
		}
	})
	k.check(err)
	got, err := k.bus.Request(k.Context(), natswire.Msg{Subject: own, Data: []byte("hello")})
	k.check(err)
	if string(got.Data) != "re: hello" || got.Header.Get("Kind") != "answer" {
		k.Fatalf("got %q with %v", got.Data, got.Header)
	}
	stop()
	k.until("nobody listens any more", func() bool {
		ctx, cancel := context.WithTimeout(k.Context(), time.Second)
		defer cancel()
		_, err := k.bus.Request(ctx, natswire.Msg{Subject: own, Data: []byte("again")})
		return protocol.CodeOf(err) == protocol.CodeNotFound
	})
}

func requestToNobody(k *kit) {
	_, err := k.bus.Request(k.Context(), natswire.Msg{Subject: k.n.OwnSubject("nobody"), Data: []byte("hello")})
	k.wantCode(err, protocol.CodeNotFound)
}

func emitIsHeard(k *kit) {
	came := k.subscribe(k.n.ProgressSubject("tool", "*", "*"))
	k.check(k.bus.Emit(k.Context(), natswire.Msg{Subject: k.n.ProgressSubject("other", "s1", "c1"), Data: []byte("0")}))
	for _, data := range []string{"1", "2", "3"} {
		k.check(k.bus.Emit(k.Context(), natswire.Msg{Subject: k.n.ProgressSubject("tool", "s1", "c1"), Data: []byte(data)}))
	}
	for _, want := range []string{"1", "2", "3"} {
		if m := k.receive(came); string(m.Data) != want || m.Subject != k.n.ProgressSubject("tool", "s1", "c1") {
			k.Fatalf("got %s %q, want %q", m.Subject, m.Data, want)
		}
	}
}

func endedContextStops(k *kit) {
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	_, err := k.bus.Publish(ctx, natswire.Msg{Subject: k.n.CallSubject("tool"), Data: []byte("x")})
	k.wantCode(err, protocol.CodeCancelled)
	_, err = k.bus.Last(ctx, k.n.Calls(), k.n.CallSubject("tool"))
	k.wantCode(err, protocol.CodeCancelled)
}

func (k *kit) subscribe(subject string) <-chan natswire.Msg {
	k.Helper()
	came := make(chan natswire.Msg, 64)
	stop, err := k.bus.Subscribe(subject, func(m natswire.Msg) { came <- m })
	k.check(err)
	k.Cleanup(stop)
	return came
}

func (k *kit) receive(came <-chan natswire.Msg) natswire.Msg {
	k.Helper()
	select {
	case m := <-came:
		return m
	case <-time.After(Patience):
		k.Fatal("nothing was heard")
	}
	panic("unreachable")
}
