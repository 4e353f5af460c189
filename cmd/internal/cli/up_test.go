package cli

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
)

func TestHintsOfUpWorkInAnotherTerminal(t *testing.T) {
	for data, want := range map[string]string{
		boot.DefaultData(): "toolfabric call now\n",
		t.TempDir():        "toolfabric call --nats nats://127.0.0.1:9 now\n",
	} {
		var screen bytes.Buffer
		a := &app{set: boot.Settings{Data: data}, err: term.Screen{Writer: &screen}}
		a.ready("nats://127.0.0.1:9", nil)
		if !strings.HasSuffix(screen.String(), want) {
			t.Errorf("%q, want its end to be %q", screen.String(), want)
		}
	}
}

func TestUpRefusesTheServerOfAnother(t *testing.T) {
	code, _, stderr := command(t, "", "up", "--nats", "nats://127.0.0.1:1")
	if code != exitUsage || !strings.Contains(stderr, "toolfabric --nats nats://127.0.0.1:1 coordinator") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

func TestUpNamesAnAddressThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	code, _, stderr := command(t, "", "up", "--listen", taken.Addr().String(), "--data", t.TempDir())
	if code != exitUsage || !strings.Contains(stderr, "another process listens on "+taken.Addr().String()) || !strings.Contains(stderr, "--listen 127.0.0.1:0") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
