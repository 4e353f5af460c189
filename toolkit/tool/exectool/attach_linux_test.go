package exectool_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

func TestACommandDiesWithItsWorker(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), doomedPipe+"="+pipe)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(pipe) // returns once the command has opened it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var pid int
	if _, err := fmt.Fscanln(f, &pid); err != nil {
		t.Fatal(err)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	late := time.AfterFunc(time.Minute, func() {
		t.Error("the command outlives its worker")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	})
	defer late.Stop()
	if _, err := io.ReadAll(f); err != nil { // ends when the command is dead
		t.Fatal(err)
	}
}

// The command belongs to a thread, and threads end.
func TestACommandOutlivesTheThreadsOfOthers(t *testing.T) {
	stop, ended := make(chan struct{}), sync.WaitGroup{}
	for range 4 {
		ended.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var one sync.WaitGroup
				one.Go(runtime.LockOSThread) // a goroutine that ends locked takes its thread along
				one.Wait()
			}
		})
	}
	for range 20 {
		if r := run(t, t.Context(), command("", "sh", "-c", `i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo done`), `{}`); r.Outcome != protocol.OutcomeCompleted {
			t.Fatalf("got %s %s", r.Outcome, r.Value)
		}
	}
	close(stop)
	ended.Wait()
}
