package main

import (
	"context"
	"errors"
	"strings"
)

// Peer is one way to make a durable call, with one durability.
type Peer struct {
	System     string // its name in the table
	Durability string // what an accepted call survives, and by which setting
	Synced     bool   // every write is on the disk before it is acknowledged
	Notes      string // what else a reader must know to compare
	// Open starts its server, worker and caller, all stopped by close. An error is a peer that cannot be had here.
	Open func(ctx context.Context, env *Env) (call Call, closeAll func(), err error)
}

// Call makes one call and returns its result. slot is the number of the caller, from 0: calls of one slot follow each
// other. It is called by as many goroutines as there are slots.
type Call func(ctx context.Context, slot int, text string) (string, error)

// question is the argument of each call, and the answer of each tool. As JSON it is 256 bytes, about a small tool call.
var question = strings.Repeat("q", 256-len(`{"text":""}`))

// echoArgs is the argument as every worker gets it.
type echoArgs struct {
	Text string `json:"text"`
}

var errWrongAnswer = errors.New("another result than the tool gave")

// peers are all that is measured, in the order of the table.
func peers() []Peer {
	return []Peer{
		oursCall(false), oursSession(false), asynqOn("everysec"), river("off"), restatePeer(false),
		oursCall(true), oursSession(true), asynqOn("always"), river("on"), restatePeer(true),
	}
}
