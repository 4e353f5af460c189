//go:build faults

package fault

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPointsAreReadFromTheEnvironment(t *testing.T) {
	got, err := parse(" K6@2=kill,K15=delay:1500ms, K1=stop ,,K3@12=panic")
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	for name, want := range map[string]struct {
		act   string
		left  int64
		pause time.Duration
	}{"K6": {"kill", 2, 0}, "K15": {"delay", 1, 1500 * time.Millisecond}, "K1": {"stop", 1, 0}, "K3": {"panic", 12, 0}} {
		if g := got[name]; g.act != want.act || g.left.Load() != want.left || g.pause != want.pause {
			t.Errorf("%s is %s at %d for %v", name, g.act, g.left.Load(), g.pause)
		}
	}
	for _, text := range []string{"K6", "=kill", "K6=", "K6=die", "K6@=kill", "K6@0=kill", "K6@-1=kill", "K6@x=kill", "K6=delay", "K6=delay:", "K6=delay:-1s", "K6=delay:5", "K6=kill,K6=stop", "delay:1s"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// arm sets points for the time of a test.
func arm(t *testing.T, text string) {
	t.Helper()
	traps, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	before := armed
	armed = traps
	t.Cleanup(func() { armed = before })
}

func TestAPointActsTheNthTimeOnly(t *testing.T) {
	arm(t, "K6@3=panic")
	panics := 0
	for range 6 {
		func() {
			defer func() {
				if r := recover(); r != nil {
					panics++
				}
			}()
			Point("K6")
			Point("K5")
		}()
		if armed["K6"].left.Load() > 0 && panics > 0 {
			t.Fatal("it acts too early")
		}
	}
	if panics != 1 {
		t.Errorf("it panics %d times", panics)
	}
}

func TestADelayPasses(t *testing.T) {
	arm(t, "K6=delay:3s")
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		Point("K6")
		if took := time.Since(before); took != 3*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}
