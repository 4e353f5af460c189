package natswire_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

func TestABucketHoldsObjectsOfNATS(t *testing.T) {
	s := natstest.Start(t)
	b := s.Connect(t, "").Skills()
	large := bytes.Repeat([]byte("0123456789"), 30<<10)
	for _, put := range []struct {
		name, about string
		data        []byte
		changed     bool
	}{{"b", "second", []byte("x"), true}, {"a", "first", large, true}, {"a", "first", large, false}, {"a", "again", large, true}} {
		if changed, err := b.Put(t.Context(), put.name, put.about, put.data); err != nil || changed != put.changed {
			t.Fatalf("%s: %v, %v", put.name, changed, err)
		}
	}
	list, err := b.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	const digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of "x"
	if o := list[1]; o.Name != "b" || o.Description != "second" || o.Size != 1 || o.Digest != digest || o.Put.IsZero() || list[0].Description != "again" {
		t.Errorf("%+v", list)
	}
	data, o, err := b.Get(t.Context(), "a")
	if err != nil || !bytes.Equal(data, large) || o != list[0] {
		t.Errorf("%d bytes, %+v, %v", len(data), o, err)
	}
	if o, err := b.Info(t.Context(), "b"); err != nil || o != list[1] {
		t.Errorf("%+v, %v", o, err)
	}
	theirs, err := plainJetStream(t, s).ObjectStore(t.Context(), "SKILLS")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := theirs.GetBytes(t.Context(), "a"); err != nil || !bytes.Equal(got, large) {
		t.Errorf("the library reads %d bytes, %v", len(got), err)
	}
	if err := theirs.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"a", "b", "nosuch"} {
		_, _, err := b.Get(t.Context(), gone)
		wantCode(t, err, protocol.CodeNotFound)
		_, err = b.Info(t.Context(), gone)
		wantCode(t, err, protocol.CodeNotFound)
	}
	wantCode(t, b.Delete(t.Context(), "nosuch"), protocol.CodeNotFound)
	if list, err := b.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if changed, err := b.Put(t.Context(), "b", "", []byte("x")); err != nil || !changed {
		t.Errorf("put again: %v, %v", changed, err)
	}
}

func TestOfSeveralThatPutAtOnceNoneMixesWithAnother(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	b := c.Skills()
	var all sync.WaitGroup
	won := make([]bool, 8)
	for i := range won {
		all.Go(func() {
			_, err := b.Put(t.Context(), "a", "", bytes.Repeat([]byte{byte(i)}, 200<<10))
			if won[i] = err == nil; err != nil {
				wantCode(t, err, protocol.CodeFenced)
			}
		})
	}
	all.Wait()
	data, o, err := b.Get(t.Context(), "a")
	if err != nil || o.Size != 200<<10 || !won[data[0]] || bytes.Count(data, data[:1]) != len(data) {
		t.Fatalf("%+v, %v", o, err)
	}
	left, err := c.Read(t.Context(), c.Names().SkillsStream(), "$O.SKILLS.C.>", 0, 100)
	if err != nil || len(left) != 2 {
		t.Errorf("%d chunks are left, %v", len(left), err)
	}
}
