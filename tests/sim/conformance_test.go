package sim_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/bustest"
	"github.com/toolfabric/toolfabric/tests/sim"
)

func TestBusConforms(t *testing.T) {
	n := names(t)
	for seed := range uint64(6) { // 0 is plain
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			bustest.RunIn(t, synctest.Test, func(t *testing.T) natswire.Bus {
				w := sim.New(sim.Config{Names: n, Seed: seed})
				t.Cleanup(w.Close)
				go w.Run(t.Context())
				return w.Connect("a")
			}, n)
		})
	}
}
