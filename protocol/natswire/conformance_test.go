package natswire_test

import (
	"testing"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/bustest"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

func TestBus(t *testing.T) {
	names, err := natswire.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	bustest.Run(t, func(t *testing.T) natswire.Bus {
		t.Parallel()
		return natstest.Start(t).Connect(t, "")
	}, names)
}
