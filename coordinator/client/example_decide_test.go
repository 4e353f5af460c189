package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func Example_decide() {
	if err := decideVacations(); err != nil {
		log.Fatal(err)
	}
}

func decideVacations() error {
	ctx := context.Background()
	conn, err := natswire.Connect(ctx, natswire.Config{URL: os.Getenv("TOOLFABRIC_NATS")})
	if err != nil {
		return err
	}
	defer conn.Close()
	c, err := client.New(client.Config{Bus: conn, Names: conn.Names(), Client: "ann"})
	if err != nil {
		return err
	}
	page, err := c.Parked(ctx, client.ParkedFilter{Kind: client.WaitsConfirmation, Tool: "request_vacation"}, 0, 0)
	if err != nil {
		return err
	}
	for _, p := range page.Parked {
		fmt.Printf("%s asks: %s %s\n", p.Tool, p.Confirmation.Hint, p.Confirmation.Payload)
		receipt, err := c.Decide(ctx, p, protocol.Decision{Confirmed: true, Payload: json.RawMessage(`{"days":3}`)}, "")
		if err != nil {
			return err
		}
		fmt.Println(receipt.Code, receipt.Message)
	}
	return nil
}
