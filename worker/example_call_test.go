package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

// The tool of the other example is called. A coordinator would make the consumer and publish the call; here the example does.
func Example_call() {
	dir, err := os.MkdirTemp("", "toolfabric")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server, err := embed.Start(embed.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	conn, err := natswire.Connect(ctx, natswire.Config{URL: server.URL()})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if err := natswire.Provision(ctx, conn, natswire.ProvisionConfig{}); err != nil {
		log.Fatal(err)
	}

	count, err := functiontool.New(functiontool.Config{
		Name: "count_words", Description: "Counts the words of a text.", Effect: tool.Read,
	}, countWords)
	if err != nil {
		log.Fatal(err)
	}
	w, err := worker.New(worker.Config{Bus: conn, Names: conn.Names(), Tools: []tool.Tool{count}})
	if err != nil {
		log.Fatal(err)
	}
	serving, drain := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- w.Run(serving) }()

	fmt.Println(callOnce(ctx, conn, "count_words", `{"text":"to be or not to be"}`))

	drain()
	fmt.Println("drained:", <-ended)
	// Output:
	// {"result":6}
	// drained: <nil>
}

// callOnce does a coordinator's part of one call.
func callOnce(ctx context.Context, conn *natswire.Conn, name, args string) string {
	names := conn.Names()
	err := conn.EnsureConsumer(ctx, natswire.Consumer{
		Stream: names.Calls(), Durable: name, Filter: names.CallSubject(name), AckWait: 30 * time.Second, MaxDeliver: 5, MaxAckPending: -1,
	})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan string, 1)
	unsubscribe, err := conn.Subscribe(names.DoneSubject("session1"), func(m natswire.Msg) {
		if r, err := protocol.DecodeResult(m.Data); err == nil {
			done <- string(r.Value)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	defer unsubscribe()
	call, err := json.Marshal(protocol.Envelope{
		V: protocol.Version, App: "example", User: "me", Session: "session1", Call: protocol.NewID(), Tool: name,
		Effect: protocol.EffectRead, Args: json.RawMessage(args), AnswersTo: protocol.MailboxResults,
		Deadline: time.Now().Add(time.Minute).UnixMilli(),
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := conn.Publish(ctx, natswire.Msg{Subject: names.CallSubject(name), Data: call}); err != nil {
		log.Fatal(err)
	}
	return <-done
}
