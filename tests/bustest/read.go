package bustest

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"sync"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func readsSeeWhatIsStored(k *kit) {
	log, other := k.n.LogSubject("app", "s1"), k.n.LogSubject("app", "s2")
	var seqs []uint64
	for i := range 10 {
		ack := k.publish(natswire.Msg{Subject: log, Header: natswire.Header{"traceparent": "t"}, Data: fmt.Append(nil, i)})
		seqs = append(seqs, ack.Seq)
		k.publish(natswire.Msg{Subject: other, Data: []byte("other")})
	}
	last, err := k.bus.Last(k.Context(), k.n.Log(), log)
	k.check(err)
	if last.Seq != seqs[9] || string(last.Data) != "9" || last.Subject != log || last.Header.Get("Traceparent") != "t" || last.Time.IsZero() {
		k.Fatalf("the last is %+v", last)
	}
	at, err := k.bus.At(k.Context(), k.n.Log(), seqs[3])
	k.check(err)
	if at.Seq != seqs[3] || string(at.Data) != "3" || at.Subject != log {
		k.Fatalf("at %d is %+v", seqs[3], at)
	}
	_, err = k.bus.At(k.Context(), k.n.Log(), last.Seq+100)
	k.wantCode(err, protocol.CodeNotFound)
	_, err = k.bus.Last(k.Context(), k.n.Log(), k.n.LogSubject("app", "none"))
	k.wantCode(err, protocol.CodeNotFound)

	for _, c := range []struct {
		subject string
		from    uint64
		max     int
		want    []uint64
	}{
		{log, 0, 100, seqs},
		{log, 1, 10, seqs},
		{log, 0, 3, seqs[:3]},
		{log, seqs[4], 100, seqs[4:]},
		{log, seqs[4] + 1, 2, seqs[5:7]},
		{log, last.Seq + 100, 5, nil},
		{k.n.LogSubject("app", "none"), 0, 5, nil},
	} {
		k.until(fmt.Sprintf("read %s from %d, at most %d", c.subject, c.from, c.max), func() bool {
			got, err := k.bus.Read(k.Context(), k.n.Log(), c.subject, c.from, c.max)
			k.check(err)
			return slices.EqualFunc(got, c.want, func(s natswire.Stored, seq uint64) bool {
				return s.Seq == seq && s.Subject == c.subject && s.Time.Unix() > 0 && len(s.Header) == 1
			})
		})
	}
	k.until("both sessions by a wildcard, in stream order", func() bool {
		got, err := k.bus.Read(k.Context(), k.n.Log(), k.n.LogFilter("app"), 0, 100)
		k.check(err)
		return len(got) == 20 && slices.IsSortedFunc(got, bySeq)
	})
}

func latestHasEachSubjectOnce(k *kit) {
	for i := range 3 {
		for s := range 5 {
			k.publish(natswire.Msg{Subject: k.n.LogSubject("app", fmt.Sprint("s", s)), Data: fmt.Append(nil, i)})
		}
	}
	k.publish(natswire.Msg{Subject: k.n.LogSubject("other", "s"), Data: []byte("x")})
	k.until("the newest of each session", func() bool {
		got, err := k.bus.Latest(k.Context(), k.n.Log(), k.n.LogFilter("app"))
		k.check(err)
		for _, m := range got {
			if string(m.Data) != "2" {
				return false
			}
		}
		return len(got) == 5 && slices.IsSortedFunc(got, bySeq)
	})
	got, err := k.bus.Latest(k.Context(), k.n.Log(), k.n.LogFilter("nobody"))
	k.check(err)
	if len(got) != 0 {
		k.Fatalf("%d messages of nobody", len(got))
	}
}

func latestBeyondAThousand(k *kit) {
	const subjects = 1500
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := w; i < subjects; i += 4 {
				m := natswire.Msg{Subject: k.n.RegistrationSubject(fmt.Sprint("tool", i), "w"), Data: []byte("beat")}
				if _, err := k.bus.Publish(k.Context(), m); err != nil {
					k.Error(err)
				}
			}
		})
	}
	writers.Wait()
	k.until("all 1500", func() bool {
		got, err := k.bus.Latest(k.Context(), k.n.Registry(), k.n.RegistrationSubject("*", "*"))
		k.check(err)
		return len(got) == subjects && slices.IsSortedFunc(got, bySeq)
	})
}

func purgeKeepsTheNewest(k *kit) {
	log := k.n.LogSubject("app", "s1")
	for range 4 {
		k.publish(natswire.Msg{Subject: log, Data: []byte("x")})
	}
	tomb := k.publish(natswire.Msg{Subject: log, Data: []byte("deleted")})
	k.publish(natswire.Msg{Subject: k.n.LogSubject("app", "s2"), Data: []byte("untouched")})
	for range 2 {
		k.check(k.bus.Purge(k.Context(), k.n.Log(), log, 1))
	}
	k.until("only the last is left", func() bool {
		got, err := k.bus.Read(k.Context(), k.n.Log(), k.n.LogFilter("app"), 0, 100)
		k.check(err)
		return len(got) == 2 && got[0].Seq == tomb.Seq
	})
	// What is kept is the tombstone: the session cannot be begun again.
	k.publishFails(natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("x")}, protocol.CodeFenced)
	k.publish(natswire.Msg{Subject: log, Expect: seq(tomb.Seq), Data: []byte("x")})
}

func purgeResetsTheFence(k *kit) {
	log := k.n.LogSubject("app", "s1")
	k.publish(natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("x")})
	k.check(k.bus.Purge(k.Context(), k.n.Log(), log, 0))
	_, err := k.bus.Last(k.Context(), k.n.Log(), log)
	k.wantCode(err, protocol.CodeNotFound)
	k.publish(natswire.Msg{Subject: log, Expect: seq(0), Data: []byte("x")})
}

func removeIsIdempotent(k *kit) {
	ack := k.publish(natswire.Msg{Subject: k.n.CallSubject("tool"), Data: []byte("x")})
	for range 2 {
		k.check(k.bus.Remove(k.Context(), k.n.Calls(), ack.Seq))
	}
	_, err := k.bus.At(k.Context(), k.n.Calls(), ack.Seq)
	k.wantCode(err, protocol.CodeNotFound)
	k.check(k.bus.Remove(k.Context(), k.n.Calls(), ack.Seq+100))
}

func logDeniesRemove(k *kit) {
	ack := k.publish(natswire.Msg{Subject: k.n.LogSubject("app", "s1"), Data: []byte("x")})
	k.wantCode(k.bus.Remove(k.Context(), k.n.Log(), ack.Seq), protocol.CodeForbidden)
	_, err := k.bus.At(k.Context(), k.n.Log(), ack.Seq)
	k.check(err)
}

func objectsComeBack(k *kit) {
	big := make([]byte, 700<<10)
	rand.New(rand.NewSource(1)).Read(big)
	for name, data := range map[string][]byte{"empty": nil, "small": []byte("hello"), "a/b c.txt": big} {
		for range 2 {
			k.check(k.bus.PutObject(k.Context(), name, data))
		}
		got, err := k.bus.GetObject(k.Context(), name)
		k.check(err)
		if !bytes.Equal(got, data) {
			k.Fatalf("%s: %d bytes came back, want %d", name, len(got), len(data))
		}
	}
	_, err := k.bus.GetObject(k.Context(), "none")
	k.wantCode(err, protocol.CodeNotFound)
	k.check(k.bus.PutObject(k.Context(), "small", []byte("other")))
	got, err := k.bus.GetObject(k.Context(), "small")
	k.check(err)
	if string(got) != "other" {
		k.Fatalf("got %q after it was replaced", got)
	}
}

func bySeq(a, b natswire.Stored) int { return int(a.Seq) - int(b.Seq) }
