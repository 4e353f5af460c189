package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

const diskSize = "48m"

// smallDisk mounts a disk of its own, or skips the test where that is not allowed.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+diskSize); err != nil {
		t.Skipf("NOT TESTED: a full disk needs a small one, and this user may not mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all that is left of a disk. free gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		n, err := f.Write(make([]byte, size))
		if errors.Is(err, syscall.ENOSPC) && n == 0 {
			size /= 2
		} else if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A nats-server that cannot write switches JetStream off and says so; once there is room, it is started anew.
func TestAFullDiskLosesNothing(t *testing.T) {
	skipShort(t)
	if !*all {
		t.Skip("make chaos does it")
	}
	disk := smallDisk(t)
	s, model := natstest.Start(t, func(c *embed.Config) { c.Dir = filepath.Join(disk, "data") }), serveModel(t)
	p := newPlace(t, s, model, "disk", longTimes)
	members := p.members()
	p.send("do it before")
	p.answered(p.sent[0])
	free := fill(t, disk)
	var refused error
	for range 2000 { // what the store has reserved takes some
		r, err := p.client.Send(t.Context(), "helper", "", client.Text("do it now"))
		if err != nil {
			refused = err
			break
		}
		p.sent = append(p.sent, sent{r, "do it now"})
	}
	switch e, ok := errors.AsType[*protocol.Error](refused); {
	case !ok:
		t.Errorf("an input to a full disk: %v", refused)
	case e.Code != protocol.CodeStorageFull && e.Code != protocol.CodeUnreachable:
		t.Errorf("an input to a full disk: code %s, %v", e.Code, refused)
	}
	t.Logf("%d inputs were accepted, then: %v", len(p.sent), refused)
	pause(t, fullFor)
	p.residue = true
	free()
	s.Restart(t)
	p.speakThrough(s.Dial(t, natswire.Config{Namespace: "disk"})) // the old connection is still on its way back
	p.send("do it afterwards")
	p.allWell()
	drain(members...)
	p.judge()
}
