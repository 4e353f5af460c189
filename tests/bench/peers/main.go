// Command peers measures one durable call through Toolfabric and through what people would use instead, in turn, on this
// machine: Asynq on Redis, River on PostgreSQL, Restate. The call is the same for all: 256 bytes of JSON by name to a
// worker, which gives the text back to the caller. Each server is a process of its own on loopback, in a directory that is
// removed at the end; worker and caller (and coordinator) are in this process.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}
