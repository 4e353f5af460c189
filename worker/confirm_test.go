package worker_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
	"github.com/toolfabric/toolfabric/worker"
)

// picky is a tool that asks by its arguments.
type picky struct {
	fn
	asks func(args json.RawMessage) (bool, error)
}

func (p *picky) AsksConfirmation(args json.RawMessage) (bool, error) { return p.asks(args) }

func (f *fabric) claimed(env protocol.Envelope) bool {
	f.t.Helper()
	_, err := f.bus.Last(f.t.Context(), f.names.Results(), f.names.ClaimSubject(env.Tool, env.Call, env.Round))
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		f.t.Fatal(err)
	}
	return err == nil
}

// gatedTools are the ways in which a tool comes to be asked about; each counts its runs.
func gatedTools(effect tool.Effect) map[string]func(runs *int) tool.Tool {
	counting := func(runs *int) fn {
		return fn{name: "refund", settings: tool.Settings{Effect: effect}, run: func(tool.Context, json.RawMessage) (json.RawMessage, error) {
			*runs++
			return json.RawMessage(`{"refunded":true}`), nil
		}}
	}
	return map[string]func(runs *int) tool.Tool{
		"flag": func(runs *int) tool.Tool {
			e := counting(runs)
			e.settings.Confirm = true
			return &e
		},
		"provider": func(runs *int) tool.Tool {
			return &picky{counting(runs), func(json.RawMessage) (bool, error) { return true, nil }}
		},
		"wrapper with the flag": func(runs *int) tool.Tool {
			e := counting(runs)
			return tool.ToolWithConfirmation(&e, true, nil)
		},
		"wrapper with a provider": func(runs *int) tool.Tool {
			e := counting(runs)
			return tool.ToolWithConfirmation(&e, false, func(string, any) bool { return true })
		},
	}
}

func TestGatedToolRunsOnceWhenPeopleAgreed(t *testing.T) {
	for name, mk := range gatedTools(tool.Read) {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				runs := 0
				e := mk(&runs)
				f.serve(e)
				f.start("w1", worker.Config{}, e)
				c := f.call(e, "c1", `{}`)
				c.Round, c.Confirmation = 1, &protocol.Confirmed{ID: "k", Confirmed: true}
				f.publish(c)
				f.want(c, protocol.OutcomeCompleted, "", `{"refunded":true}`)
				if !f.claimed(c) {
					t.Error("an agreement was used without a claim")
				}
				f.publish(c) // as a broker that lost the ack would
				after(time.Minute)
				if runs != 1 {
					t.Errorf("one agreement let it run %d times", runs)
				}
			})
		})
	}
}

func TestGatedToolNeverRunsWithoutAnAgreement(t *testing.T) {
	denied := protocol.Confirmed{ID: "k"}
	for name, mk := range gatedTools(tool.Idempotent) {
		for word, round := range map[*protocol.Confirmed]int{nil: 0, &denied: 1} {
			if word != nil && !strings.Contains(name, "provider") {
				round = 0 // the coordinator asks about a flag before the first round
			}
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, f *fabric) {
					runs := 0
					e := mk(&runs)
					f.serve(e)
					f.start("w1", worker.Config{}, e)
					c := f.call(e, "c1", `{}`)
					c.Round, c.Confirmation = round, word
					f.publish(c)
					switch {
					case word != nil:
						f.want(c, protocol.OutcomeDenied, protocol.CodeDenied, `{"error":"error tool \"refund\" call is rejected"}`)
					case strings.Contains(name, "flag"):
						f.want(c, protocol.OutcomeFailed, protocol.CodeForbidden, "")
					default:
						r := f.want(c, protocol.OutcomeAsks, "", "")
						if r.Ask == nil || !r.Ask.Provider || r.Ask.Hint != toolconfirmation.Hint("refund") || f.claimed(c) {
							t.Errorf("it asks %+v, claimed: %v", r.Ask, f.claimed(c))
						}
					}
					if runs != 0 {
						t.Errorf("it ran %d times", runs)
					}
					f.wantQueue("refund", 0, 0)
				})
			})
		}
	}
}

// A question does not follow a run: a redelivery of a call whose claim is taken is left to its coordinator, although the
// provider has changed its mind.
func TestProviderIsNotAskedOverARun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("refund", tool.AtMostOnce)
		asks := false
		p := &picky{g.fn, func(json.RawMessage) (bool, error) { return asks, nil }}
		f.consumer("refund", 5*time.Second, 5)
		f.start("w1", worker.Config{}, p)
		c := f.call(p, "c1", `{}`)
		f.publish(c)
		if g.starts() != 1 {
			t.Fatalf("%d starts", g.starts())
		}
		f.world.Kill("w1")
		asks = true
		r := &record{}
		f.start("w2", worker.Config{Listener: r.events()}, p)
		after(20 * time.Second)
		if !slices.Equal(r.ways(), []string{"c1/2 dropped"}) {
			t.Errorf("got %v", r.ways())
		}
		if got, ok := f.result(c); ok {
			t.Errorf("a call that ran is answered with %s", got.Outcome)
		}
	})
}

func TestProviderThatPanicsFailsItsCallAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("refund", tool.AtMostOnce)
		p := &picky{*e, func(args json.RawMessage) (bool, error) {
			if string(args) == `{"n":0}` {
				panic("division by zero")
			}
			return false, nil
		}}
		f.serve(p)
		f.start("w1", worker.Config{}, p)
		bad, good := f.call(p, "c1", `{"n":0}`), f.call(p, "c2", `{"n":1}`)
		f.publish(bad)
		f.publish(good)
		f.want(bad, protocol.OutcomeFailed, protocol.CodeToolPanic, "")
		f.want(good, protocol.OutcomeCompleted, "", `{"n":1}`)
	})
}

func TestAgreementIsToOneVersionExactly(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		runs := 0
		e := echo("refund", tool.Read)
		e.run = func(tool.Context, json.RawMessage) (json.RawMessage, error) { runs++; return nil, nil }
		f.serve(e)
		r := &record{}
		f.start("w1", worker.Config{Listener: r.events()}, e)
		c := f.call(e, "c1", `{}`)
		c.Digest, c.Round, c.Confirmation = "another", 1, &protocol.Confirmed{ID: "k", Confirmed: true}
		f.publish(c)
		after(30 * time.Second)
		got := f.want(c, protocol.OutcomeFailed, protocol.CodeDigestMismatch, "")
		if want := []string{"c1/1 returned", "c1/2 returned", "c1/3 returned", "c1/4 returned", "c1/5 answered"}; runs != 0 || !slices.Equal(r.ways(), want) {
			t.Errorf("%d runs, %v, told as %s", runs, r.ways(), got.Value)
		}
	})
}

// vacation is ADK's example with a second stage: it asks its manager, and for long leaves another person too. What a stage
// knows is in the session's state.
func vacation() *fn {
	return &fn{name: "vacation", settings: tool.Settings{Effect: tool.AtMostOnce}, run: func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
		word := ctx.ToolConfirmation()
		switch {
		case word == nil:
			return json.RawMessage(`{"status":"waiting"}`), ctx.RequestConfirmation("how many days?", map[string]any{"days": 0})
		case !word.Confirmed:
			return json.RawMessage(`{"status":"recorded: refused"}`), nil
		}
		if days, err := ctx.State().Get("days"); err == nil {
			return json.Marshal(map[string]any{"days": days, "by": word.Payload})
		}
		days := word.Payload.(map[string]any)["days"]
		if err := ctx.State().Set("days", days); err != nil {
			return nil, err
		}
		return nil, ctx.RequestConfirmation("really?", nil)
	}}
}

func TestToolAsksTwiceOnTwoWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		v := vacation()
		f.serve(v)
		f.start("w1", worker.Config{}, v)
		c := f.call(v, "c1", `{}`)
		f.publish(c)
		r := f.want(c, protocol.OutcomeAsks, "", `{"status":"waiting"}`)
		if r.Ask.Hint != "how many days?" || string(r.Ask.Payload) != `{"days":0}` || r.Ask.Provider {
			t.Errorf("it asks %+v", r.Ask)
		}
		f.world.Kill("w1")

		f.start("w2", worker.Config{}, v)
		c.Round, c.Confirmation = 1, &protocol.Confirmed{ID: "k1", Confirmed: true, Payload: json.RawMessage(`{"days":5}`)}
		f.publish(c)
		r = f.want(c, protocol.OutcomeAsks, "", "")
		if r.Worker != "w2" || r.Ask.Hint != "really?" || r.Value != nil || string(r.Actions.StateDelta["days"]) != "5" {
			t.Errorf("the second stage answers %+v, %s, asking %+v", r, r.Value, r.Ask)
		}

		c.Round, c.Confirmation, c.State = 2, &protocol.Confirmed{ID: "k2", Confirmed: true, Payload: json.RawMessage(`"the boss"`)}, r.Actions.StateDelta
		f.publish(c)
		f.want(c, protocol.OutcomeCompleted, "", `{"by":"the boss","days":5}`)

		refused := f.call(v, "c2", `{}`)
		refused.Round, refused.Confirmation = 1, &protocol.Confirmed{ID: "k3"}
		f.publish(refused)
		f.want(refused, protocol.OutcomeCompleted, "", `{"status":"recorded: refused"}`)
		for _, round := range []int{0, 1, 2} {
			c.Round = round
			if !f.claimed(c) {
				t.Errorf("round %d was not claimed", round)
			}
		}
	})
}
