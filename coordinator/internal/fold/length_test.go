package fold

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

// conversation appends runs of one call each until the log has n events, as a session of usual contents would.
func (l *log) conversation(n int) {
	l.t.Helper()
	text := strings.Repeat("x", 256)
	for len(l.events) < n {
		in := message(protocol.NewID())
		in.Input.Content = json.RawMessage(`{"role":"user","parts":[{"text":"` + text + `"}]}`)
		in.Input.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		l.adopt(in)
		call := protocol.NewID()
		turn := asked(call)
		turn.Calls[0].Digest = strings.Repeat("0", 64)
		turn.Calls[0].Args = json.RawMessage(`{"text":"` + text + `"}`)
		l.modelled(turn)
		l.answer(call, "")
		l.say(Snapshot{})
		l.modelled(asked())
	}
}

// read is what an adoption at the end of the log reads, from the newest snapshot on: events and their bytes.
func (l *log) read() (events, bytes int) {
	l.t.Helper()
	from := int(l.state.Snapshot)
	for _, ev := range l.events[max(from-1, 0):] {
		data, err := protocol.Encode(&ev)
		if err != nil {
			l.t.Fatal(err)
		}
		events++
		bytes += len(data)
	}
	return events, bytes
}

// Times are the benchmark's to show (toolfabric bench sessions); what they come from is counted here.
func TestALongLogCostsWhatAShortOneDoes(t *testing.T) {
	const window = 2 * SnapshotGap // so that both have snapshots of every age
	cost := func(l *log) (events, bytes int) {
		for end := len(l.events) + window; len(l.events) < end; {
			l.conversation(len(l.events) + 1)
			e, b := l.read()
			events, bytes = events+e, bytes+b
		}
		return events, bytes
	}
	turns := func(l *log) float64 { return testing.AllocsPerRun(100, func() { l.conversation(len(l.events) + 1) }) }
	short, long := newLog(t), newLog(t)
	short.conversation(SnapshotGap)
	long.conversation(4 * MaxSeen) // from here on nothing more is remembered
	shortEvents, shortBytes := cost(short)
	longEvents, longBytes := cost(long)
	t.Logf("an adoption reads %d events of %d bytes in windows of short logs, %d of %d of long ones", shortEvents, shortBytes, longEvents, longBytes)
	if 2*longEvents > 3*shortEvents || 2*longBytes > 3*shortBytes {
		t.Errorf("an adoption of a long log reads %d events, %d bytes; of a short one %d events, %d bytes", longEvents, longBytes, shortEvents, shortBytes)
	}
	if s, l := turns(short), turns(long); 2*l > 3*s {
		t.Errorf("a run of a long log allocates %.0f times, of a short one %.0f times", l, s)
	}
}
