//go:build faults

package fault

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Env is the environment variable that arms points: name[@n]=kill|stop|panic|delay:DURATION, separated by commas. The
// n-th time that the process comes by, the first unless n is given, it says "fault NAME hit" in a line on stderr and is
// killed by SIGKILL, stopped by SIGSTOP, panics, or waits. What cannot be read is a panic at the start.
const Env = "TF_FAULT"

const stopsWithin = 50 * time.Millisecond

// armed is the points that do something, by name. Only init writes it.
var armed map[string]*trap

func init() {
	var err error
	if armed, err = parse(os.Getenv(Env)); err != nil {
		panic(err)
	}
}

// trap is what an armed point does, once.
type trap struct {
	left  atomic.Int64 // times until it snaps
	act   string
	pause time.Duration // of a delay
}

// Point ends, stops or delays the process if the environment arms the point of that name.
func Point(name string) {
	t := armed[name]
	if t == nil || t.left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "fault %s hit\n", name)
	switch t.act {
	case "kill":
		signal(syscall.SIGKILL)
		select {} // it is on its way
	case "stop":
		signal(syscall.SIGSTOP) // the parent lets it go on with SIGCONT
		time.Sleep(stopsWithin) // the kernel takes a moment until every thread stands; nothing passes the point in it
	case "panic":
		panic("fault " + name)
	case "delay":
		time.Sleep(t.pause)
	}
}

func signal(s syscall.Signal) {
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		panic(err)
	}
}

func parse(text string) (map[string]*trap, error) {
	traps := map[string]*trap{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		where, act, ok := strings.Cut(item, "=")
		name, count, counted := strings.Cut(where, "@")
		t, n := &trap{act: act}, int64(1)
		var err error
		if counted {
			n, err = strconv.ParseInt(count, 10, 64)
		}
		if d, delay := strings.CutPrefix(act, "delay:"); delay && err == nil {
			t.act = "delay"
			t.pause, err = time.ParseDuration(d)
		} else if act != "kill" && act != "stop" && act != "panic" {
			ok = false
		}
		if !ok || name == "" || err != nil || n < 1 || t.pause < 0 || traps[name] != nil {
			return nil, fmt.Errorf("fault: %s has %q; want NAME[@N]=kill|stop|panic|delay:DURATION, each name once", Env, item)
		}
		t.left.Store(n)
		traps[name] = t
	}
	return traps, nil
}
