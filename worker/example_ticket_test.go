package worker_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

type printArgs struct {
	Title string `json:"title"`
}

type printTicket struct {
	Status string `json:"status"`
	Ticket string `json:"ticket"`
}

// orderPrint gives the work to somebody else and returns a ticket, which the model reads. Before it does, it stores where
// the result belongs: whoever has that text can give it, this process or the next one.
func orderPrint(ctx tool.Context, _ printArgs) (printTicket, error) {
	ticket := ctx.FunctionCallID() // the same if the call is tried again
	err := os.WriteFile(filepath.Join("tickets", ticket), []byte(ctx.ResultHandle()), 0o600)
	return printTicket{Status: "ordered", Ticket: ticket}, err
}

// finishPrint is what a program does that hears, at any time, that the work of a ticket is done.
func finishPrint(ctx context.Context, conn *natswire.Conn, ticket string, pages int) error {
	handle, err := os.ReadFile(filepath.Join("tickets", filepath.Base(ticket)))
	if err != nil {
		return err
	}
	return worker.Complete(ctx, conn, conn.Names(), string(handle), map[string]any{"pages": pages})
}

func Example_ticket() {
	if err := printOrders(); err != nil {
		log.Fatal(err)
	}
}

func printOrders() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	conn, err := natswire.Connect(ctx, natswire.Config{URL: os.Getenv("TOOLFABRIC_NATS")})
	if err != nil {
		return err
	}
	defer conn.Close()
	if len(os.Args) == 3 && os.Args[1] == "finish" {
		if err := finishPrint(ctx, conn, os.Args[2], 12); err != nil {
			return err
		}
		return nil
	}
	if err := os.MkdirAll("tickets", 0o700); err != nil {
		return err
	}
	order, err := functiontool.New(functiontool.Config{
		Name: "order_print", Description: "Has a report printed.", IsLongRunning: true,
	}, orderPrint)
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Bus: conn, Names: conn.Names(), Tools: []tool.Tool{order}})
	if err != nil {
		return err
	}
	return w.Run(ctx) // until an interrupt
}
