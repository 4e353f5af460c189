package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// counting is a Bus that counts the events of logs that were read.
type counting struct {
	natswire.Bus
	log  string
	read int
}

func (b *counting) Read(ctx context.Context, stream, subject string, from uint64, max int) ([]natswire.Stored, error) {
	got, err := b.Bus.Read(ctx, stream, subject, from, max)
	if stream == b.log {
		b.read += len(got)
	}
	return got, err
}

// talked appends a conversation of runs events with a snapshot after every 100, as a coordinator would: the inputs are
// in-0, in-1, ...
func (f *fabric) talked(session string, runs int) {
	f.t.Helper()
	state := fold.State{App: "helper", Session: session}
	var snapshot uint64
	for i := range runs {
		id := "in-" + strconv.Itoa(i)
		ev := protocol.Event{Snapshot: snapshot, Inputs: folded(id), Turn: says("answer " + strconv.Itoa(i)), Stop: done()}
		f.append("helper", session, ev)
		var err error
		if state, err = fold.Fold(state, uint64(i+1), ev); err != nil {
			f.t.Fatal(err)
		}
		if i%100 == 99 {
			data, err := json.Marshal(state)
			if err != nil {
				f.t.Fatal(err)
			}
			ev := protocol.Event{V: protocol.Version, ID: protocol.NewID(), Snapshot: snapshot, State: data}
			snapshot = f.publish(natswire.Msg{Subject: f.conn.Names().LogSubject("helper", session), Data: encode(f.t, ev)}).Seq
		}
	}
}

func TestWaitReadsTheEndOfALongLog(t *testing.T) {
	f := newFabric(t)
	const runs = 1050
	f.talked("s1", runs)
	bus := &counting{Bus: f.conn, log: f.conn.Names().Log()}
	c, err := New(Config{Bus: bus, Names: f.conn.Names()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Wait(soon(t), "helper", "s1", fmt.Sprintf("in-%d", runs-1))
	if err != nil || out.Text != fmt.Sprintf("answer %d", runs-1) {
		t.Fatalf("%+v, %v", out, err)
	}
	if bus.read > fold.SnapshotGap {
		t.Errorf("%d events were read for the newest input of a log of %d", bus.read, runs)
	}
}

func TestWaitFindsWhatIsOlderThanTheSnapshots(t *testing.T) {
	f := newFabric(t)
	f.serve("helper")
	const runs = fold.MaxSeen + 250
	f.talked("s1", runs)
	for _, i := range []int{3, runs - 200, runs - 1} { // forgotten, known to the snapshot, newer than it
		out, err := f.Wait(soon(t), "helper", "s1", fmt.Sprintf("in-%d", i))
		if err != nil || out.Text != fmt.Sprintf("answer %d", i) {
			t.Errorf("input %d: %+v, %v", i, out, err)
		}
	}
	receipt, err := f.Send(t.Context(), "helper", "s1", Text("more"))
	if err != nil {
		t.Fatal(err)
	}
	if from, _ := f.since(t.Context(), "helper", "s1", receipt.InputID); from < runs-100 {
		t.Errorf("an input that nobody took up yet is looked for from sequence %d on", from)
	}
}

// An input that guards its run is in INPUT for as long as the run takes.
func TestWaitFindsTheInputThatGuardsALongRun(t *testing.T) {
	f := newFabric(t)
	f.serve("helper")
	receipt, err := f.Send(t.Context(), "helper", "s1", Text("go"))
	if err != nil {
		t.Fatal(err)
	}
	state := fold.State{App: "helper", Session: "s1"}
	for i := range fold.MaxSeen + 10 {
		ev := protocol.Event{Inputs: folded("in-" + strconv.Itoa(i))}
		if i == 0 {
			ev = protocol.Event{Adopt: &protocol.Adopt{Coordinator: "c", Adoption: "a", Guard: receipt.Seq}, Inputs: folded(receipt.InputID)}
			ev.Inputs[0].Seq = receipt.Seq
		}
		if state, err = fold.Fold(state, uint64(i+1), ev); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	ev := protocol.Event{V: protocol.Version, ID: protocol.NewID(), State: data}
	snapshot := f.publish(natswire.Msg{Subject: f.conn.Names().LogSubject("helper", "s1"), Data: encode(t, ev)}).Seq
	f.append("helper", "s1", protocol.Event{Snapshot: snapshot, Inputs: folded("newest")})
	if from, _ := f.since(t.Context(), "helper", "s1", receipt.InputID); from != 0 {
		t.Errorf("it is looked for from sequence %d on, behind the event that folded it", from)
	}
}
