package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/signal"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

type vacationArgs struct {
	Days int `json:"days" jsonschema:"how many days off"`
}

// vacationForm is what the manager sees, changes and sends back.
type vacationForm struct {
	Days int `json:"days"`
}

type vacationAnswer struct {
	Status   string `json:"status"`
	Asked    any    `json:"asked,omitempty"`
	Approved int    `json:"approved,omitempty"`
}

// requestVacation runs twice when it asks: up to RequestConfirmation, and from its beginning when the manager has spoken,
// perhaps days later and in another process. What the second run needs of the first is in the session's state.
func requestVacation(ctx tool.Context, args vacationArgs) (vacationAnswer, error) {
	word := ctx.ToolConfirmation()
	if word == nil {
		if args.Days <= 2 {
			return vacationAnswer{Status: "booked", Asked: args.Days, Approved: args.Days}, nil
		}
		if err := ctx.State().Set("vacation_asked", args.Days); err != nil {
			return vacationAnswer{}, err
		}
		return vacationAnswer{Status: "waits for the manager"}, ctx.RequestConfirmation("How many days may it be?", vacationForm(args))
	}
	asked, err := ctx.State().Get("vacation_asked")
	if err != nil {
		return vacationAnswer{}, err
	}
	if !word.Confirmed {
		return vacationAnswer{Status: "rejected", Asked: asked}, nil
	}
	var form vacationForm
	raw, err := json.Marshal(word.Payload)
	if err == nil {
		err = json.Unmarshal(raw, &form)
	}
	if err != nil || form.Days < 1 || form.Days > args.Days {
		return vacationAnswer{}, errors.New("the manager sent no number of days between 1 and those that were asked for")
	}
	return vacationAnswer{Status: "booked", Asked: asked, Approved: form.Days}, nil
}

func Example_vacation() {
	if err := serveVacations(); err != nil {
		log.Fatal(err)
	}
}

func serveVacations() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	conn, err := natswire.Connect(ctx, natswire.Config{URL: os.Getenv("TOOLFABRIC_NATS")})
	if err != nil {
		return err
	}
	defer conn.Close()
	vacation, err := functiontool.New(functiontool.Config{
		Name: "request_vacation", Description: "Asks the manager for days off.",
	}, requestVacation)
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Bus: conn, Names: conn.Names(), Tools: []tool.Tool{vacation}})
	if err != nil {
		return err
	}
	return w.Run(ctx) // until an interrupt
}
