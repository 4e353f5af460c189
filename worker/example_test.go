package worker_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

type countArgs struct {
	Text string `json:"text" jsonschema:"the text to count words in"`
}

func countWords(_ tool.Context, args countArgs) (int, error) {
	return len(strings.Fields(args.Text)), nil
}

func serveCount() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	conn, err := natswire.Connect(ctx, natswire.Config{URL: os.Getenv("TOOLFABRIC_NATS")})
	if err != nil {
		return err
	}
	defer conn.Close()
	count, err := functiontool.New(functiontool.Config{
		Name: "count_words", Description: "Counts the words of a text.", Effect: tool.Read,
	}, countWords)
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Bus: conn, Names: conn.Names(), Tools: []tool.Tool{count}})
	if err != nil {
		return err
	}
	return w.Run(ctx) // until an interrupt
}

func Example() {
	if err := serveCount(); err != nil {
		log.Fatal(err)
	}
}
