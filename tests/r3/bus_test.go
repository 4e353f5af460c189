package r3

import (
	"context"
	"testing"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/bustest"
)

func TestBusOnThreeReplicas(t *testing.T) {
	c := start(t)
	names, err := natswire.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	bustest.Run(t, func(t *testing.T) natswire.Bus {
		conn := c.dial(t)
		for _, stream := range append(names.Streams(), names.ObjectStream(), names.ParkStream(), names.ToolsStream()) {
			await(t, stream+" of the case before is gone", func(ctx context.Context) error {
				_, err := conn.Request(ctx, natswire.Msg{Subject: "$JS.API.STREAM.DELETE." + stream})
				return err
			})
		}
		provision(t, conn)
		return conn
	}, names)
}
