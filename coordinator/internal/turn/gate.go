package turn

import (
	"encoding/json"
	"fmt"

	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
)

// Desk is where confirmations are made: whose session it is, what time it is, and the operator's rules. What comes of the
// rules is recorded with the call; replay does not ask them again.
type Desk struct {
	App, Session, User string
	Now                int64          // Unix milliseconds of the broker's clock; a confirmation expires so much later
	NewID              func() string  // gives unguessable ids
	Policy             *policy.Policy // nil has no rules
	Moment             *Moment        // callbacks that have a say; nil is none
}

// flagHint is ADK's text for a tool that is declared to need a confirmation.
const flagHint = "Please approve or reject the tool call %s() by responding with a FunctionResponse with an expected ToolConfirmation payload."

// gate is the confirmation that c, which could run, needs before it does; nil for none. flag is what its tool declares, ask
// what a callback wants to know. One agreement counts for all of them.
func (d Desk) gate(c *protocol.Call, agent string, flag bool, ask *protocol.Ask) *protocol.Confirmation {
	ruling := d.judge(c, agent, c.Args)
	asks := protocol.Confirmation{Origin: ruling.Rule, Hint: ruling.Hint}
	if flag {
		asks.Origin, asks.Hint = protocol.OriginFlag, paragraphs(fmt.Sprintf(flagHint, c.Tool), ruling.Hint)
	}
	if ask != nil {
		asks.Payload = ask.Payload
		if asks.Hint = paragraphs(ask.Hint, asks.Hint); asks.Origin == "" {
			asks.Origin = protocol.OriginCallback
		}
	}
	if asks.Origin == "" {
		return nil
	}
	return d.issue(c, c.Args, asks, ruling)
}

// ToolAsks is the confirmation that c's answer of outcome asks entails, with args as what runs: the operator's rules add to
// its strictness, and say whether a denial is the tool's to read.
func (d Desk) ToolAsks(c *protocol.Call, agent string, args json.RawMessage, ask *protocol.Ask) *protocol.Confirmation {
	ruling := d.judge(c, agent, args)
	asks := protocol.Confirmation{Origin: protocol.OriginTool, Hint: paragraphs(ask.Hint, ruling.Hint), Payload: ask.Payload}
	if ask.Provider {
		asks.Origin = protocol.OriginProvider
		if ask.Hint == "" {
			asks.Hint = paragraphs(fmt.Sprintf(flagHint, c.Tool), ruling.Hint)
		}
	}
	asks.ToolDecides = !ask.Provider && !ruling.EnforceDenial
	return d.issue(c, args, asks, ruling)
}

// CallbackAsks is the confirmation that c, which would run with args, needs because a callback asks about it.
func (d Desk) CallbackAsks(c *protocol.Call, agent string, args json.RawMessage, ask *protocol.Ask) *protocol.Confirmation {
	ruling := d.judge(c, agent, args)
	asks := protocol.Confirmation{Origin: protocol.OriginCallback, Hint: paragraphs(ask.Hint, ruling.Hint), Payload: ask.Payload}
	return d.issue(c, args, asks, ruling)
}

// Edited is the confirmation that c needs once people have changed its arguments, and the arguments as they would run. It
// is never less strict than was, the confirmation that was decided by the change. It returns an *Error when the arguments
// are refused, with the codes of Decide, and digest_mismatch when the version that c was judged against is not offered.
func (d Desk) Edited(offers []Offer, c *protocol.Call, agent string, args json.RawMessage, was *protocol.Confirmation) (*protocol.Confirmation, json.RawMessage, error) {
	j := judge{offers: offers}
	offer := j.offer(c.Tool)
	if offer == nil || offer.Pinned != c.Digest {
		return nil, nil, protocol.Errorf(protocol.CodeDigestMismatch, "%s is not offered any more in the version that was asked about: approve or deny the call as it is", c.Tool)
	}
	normal, err := normalize(offer, nil, args)
	if err != nil {
		return nil, nil, refusal(err, fmt.Sprintf("the edited arguments of %s are refused", c.Tool))
	}
	normal = protocol.Compact(normal)
	ruling := d.judge(c, agent, normal)
	asks := protocol.Confirmation{Origin: was.Origin, Hint: was.Hint, Payload: was.Payload, Need: was.Need, NotRequester: was.NotRequester}
	asks.ToolDecides = was.ToolDecides && !ruling.EnforceDenial
	return d.issue(c, normal, asks, ruling), normal, nil
}

func (d Desk) judge(c *protocol.Call, agent string, args json.RawMessage) policy.Ruling {
	return d.Policy.Judge(policy.Call{Tool: c.Tool, Agent: agent, User: d.User, App: d.App, Effect: c.Effect, Args: args})
}

// issue completes a confirmation of c with args.
func (d Desk) issue(c *protocol.Call, args json.RawMessage, asks protocol.Confirmation, ruling policy.Ruling) *protocol.Confirmation {
	asks.ID = d.NewID()
	asks.Need = max(asks.Need, ruling.Need)
	asks.NotRequester = asks.NotRequester || ruling.NotRequester
	asks.Expires = d.Now + c.Park
	asks.Digest = protocol.ConfirmationDigest(d.Session, c, args, asks.Expires, asks.ID)
	return &asks
}

// paragraphs joins the texts that are not empty, a line each.
func paragraphs(texts ...string) string {
	out := ""
	for _, t := range texts {
		if out != "" && t != "" {
			out += "\n"
		}
		out += t
	}
	return out
}
