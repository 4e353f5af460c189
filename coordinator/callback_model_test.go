package coordinator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
)

func answering(s string) *model.LLMResponse {
	return &model.LLMResponse{Content: genai.NewContentFromText(s, genai.RoleModel)}
}

// lastTurn is the newest turn of a session with words in it.
func (f *fabric) lastTurn(app, session string) *protocol.Turn {
	f.Helper()
	var last *protocol.Turn
	for _, e := range f.log(app, session) {
		if e.Turn != nil && len(e.Turn.Content) > 0 {
			last = e.Turn
		}
	}
	if last == nil {
		f.Fatal("nobody has said anything")
	}
	return last
}

// What model callbacks make of one question: how often the model is asked, what is recorded or why the run failed.
func TestModelCallbacks(t *testing.T) {
	fails := &oracle{answer: func(context.Context, *model.LLMRequest) ([]*genai.Part, error) {
		return nil, protocol.Errorf(protocol.CodeModelFailed, "overloaded")
	}}
	for _, c := range []struct {
		name    string
		cfg     llmagent.Config
		plugin  plugin.Config
		fails   bool
		asked   int
		says    string // the recorded text
		by      protocol.Speaker
		problem string // of the run
		told    string // instruction that the model got
	}{
		{
			name: "a request that was changed is what the model gets", asked: 1, says: "hello", told: "Be short.",
			cfg: llmagent.Config{BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
				req.Config.SystemInstruction = genai.NewContentFromText("Be short.", genai.RoleUser)
				req.Contents[0].Parts[0].Text = "changed"
				return nil, nil
			}}},
		},
		{
			name: "an answer in the model's place; after-model callbacks are not asked", says: "cached", by: protocol.SpeakerBeforeModel,
			cfg: llmagent.Config{
				BeforeModelCallbacks: []llmagent.BeforeModelCallback{
					func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answering("cached"), nil },
					func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
						return nil, errors.New("not asked")
					},
				},
				AfterModelCallbacks: []llmagent.AfterModelCallback{func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
					return answering("changed"), nil
				}},
			},
		},
		{
			name: "a plugin's answer skips the agent's callbacks", says: "of the plugin", by: protocol.SpeakerBeforeModel,
			plugin: plugin.Config{BeforeModelCallback: func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
				return answering("of the plugin"), nil
			}},
			cfg: llmagent.Config{BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
				return nil, errors.New("not asked")
			}}},
		},
		{
			name: "an error before ends the run", problem: "BeforeModelCallbacks[0] of agent helper failed: not today",
			cfg: llmagent.Config{BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
				return nil, errors.New("not today")
			}}},
		},
		{
			name: "a panic before ends the run", problem: "BeforeModelCallbacks[0] of agent helper panicked; the coordinator's log has the stack",
			cfg: llmagent.Config{BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
				panic("a secret")
			}}},
		},
		{
			name: "an answer is replaced", asked: 1, says: "HELLO",
			cfg: llmagent.Config{AfterModelCallbacks: []llmagent.AfterModelCallback{func(_ agent.Context, r *model.LLMResponse, _ error) (*model.LLMResponse, error) {
				return answering(strings.ToUpper(r.Content.Parts[0].Text)), nil
			}}},
		},
		{
			name: "an answer is changed in place", asked: 1, says: "hello there",
			cfg: llmagent.Config{AfterModelCallbacks: []llmagent.AfterModelCallback{func(_ agent.Context, r *model.LLMResponse, _ error) (*model.LLMResponse, error) {
				r.Content.Parts[0].Text += " there"
				return nil, nil
			}}},
		},
		{
			name: "an error after ends the run", asked: 1, problem: "AfterModelCallback of plugin p failed: no",
			plugin: plugin.Config{AfterModelCallback: func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
				return nil, errors.New("no")
			}},
		},
		{
			name: "a panic after ends the run", asked: 1, problem: "AfterModelCallbacks[0] of agent helper panicked; the coordinator's log has the stack",
			cfg: llmagent.Config{AfterModelCallbacks: []llmagent.AfterModelCallback{func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
				panic("a secret")
			}}},
		},
		{
			name: "a model's error is answered, and that goes through after-model callbacks", fails: true, asked: 1, says: "fallback: overloaded!",
			cfg: llmagent.Config{
				OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{func(_ agent.Context, req *model.LLMRequest, err error) (*model.LLMResponse, error) {
					return answering("fallback: " + protocol.ProblemOf(err).Message), nil
				}},
				AfterModelCallbacks: []llmagent.AfterModelCallback{func(_ agent.Context, r *model.LLMResponse, err error) (*model.LLMResponse, error) {
					return answering(r.Content.Parts[0].Text + "!"), err
				}},
			},
		},
		{
			name: "a model's error is replaced", fails: true, asked: 1, problem: "OnModelErrorCallbacks[0] of agent helper failed: other",
			cfg: llmagent.Config{OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) {
				return nil, errors.New("other")
			}}},
		},
		{
			name: "a panic about a model's error ends the run", fails: true, asked: 1, problem: "OnModelErrorCallbacks[0] of agent helper panicked; the coordinator's log has the stack",
			cfg: llmagent.Config{OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) {
				panic("a secret")
			}}},
		},
		{
			name: "a model's error stands when nobody says anything", fails: true, asked: 1, problem: "overloaded",
			cfg: llmagent.Config{OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) {
				return nil, nil
			}}},
		},
		{
			name: "after-model callbacks may answer an error", fails: true, asked: 1, says: "rescued",
			cfg: llmagent.Config{AfterModelCallbacks: []llmagent.AfterModelCallback{func(_ agent.Context, r *model.LLMResponse, err error) (*model.LLMResponse, error) {
				if r != nil || err == nil {
					return nil, nil
				}
				return answering("rescued"), nil
			}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				o := says("hello", 0)
				if c.fails {
					o = &oracle{answer: fails.answer}
				}
				c.cfg.Name, c.cfg.Model, c.cfg.Instruction = "helper", o, "Be kind."
				c.plugin.Name = "p"
				p, err := plugin.New(c.plugin)
				if err != nil {
					t.Fatal(err)
				}
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(c.cfg)}, Plugins: []*plugin.Plugin{p}})
				f.say("helper", "s1", "hi")
				s := f.rests("helper", "s1", time.Minute)
				problem := ""
				if s.Problem != nil {
					problem = s.Problem.Message
				}
				asked, req := o.requests()
				if problem != c.problem || asked != c.asked {
					t.Fatalf("the problem is %q, want %q; the model was asked %d times, want %d", problem, c.problem, asked, c.asked)
				}
				if c.problem == "" {
					if turn := f.lastTurn("helper", "s1"); !strings.Contains(string(turn.Content), `"`+c.says+`"`) || turn.By != c.by {
						t.Errorf("recorded is %q of %s, want %q of %q", turn.By, turn.Content, c.by, c.says)
					}
				}
				if c.told != "" && req.Config.SystemInstruction.Parts[0].Text != c.told {
					t.Errorf("the model was told %q", req.Config.SystemInstruction.Parts[0].Text)
				}
			})
		})
	}
}

// A callback that changes a request changes what this model is asked, and nothing that is recorded or asked later.
func TestChangesOfARequestAreNotKept(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		o := says("hello", 0)
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o,
			GenerateContentConfig: &genai.GenerateContentConfig{Labels: map[string]string{"a": "b"}},
			BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
				if len(req.Config.Labels) != 1 || req.Contents[0].Parts[0].Text != "hi" {
					t.Errorf("it is given labels %v and %q", req.Config.Labels, req.Contents[0].Parts[0].Text)
				}
				for _, c := range req.Contents {
					c.Parts[0].Text = "changed"
				}
				req.Config.Labels["c"] = "d"
				return nil, nil
			}}})}})
		for range 2 {
			f.say("helper", "s1", "hi")
			f.pass(time.Second)
			f.rests("helper", "s1", time.Minute)
		}
		n, req := o.requests()
		if n != 2 || len(req.Contents) != 3 || req.Contents[2].Parts[0].Text != "changed" || len(req.Config.Labels) != 2 {
			t.Errorf("%d requests, the last one of %d contents", n, len(req.Contents))
		}
	})
}

// While somebody may still change an answer, watchers are shown no pieces of it.
func TestAnswersThatMayChangeAreNotStreamed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		pieces := &streamer{}
		cfg := llmagent.Config{Name: "helper", Model: pieces}
		plain := f.agent(cfg)
		cfg.Name = "careful"
		cfg.AfterModelCallbacks = []llmagent.AfterModelCallback{func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			return answering("nothing to see"), nil
		}}
		careful := f.agent(cfg)
		f.start("c1", coordinator.Config{Agents: []agent.Agent{plain, careful}})
		for app, want := range map[string]int{"helper": 1, "careful": 0} {
			heard := make(chan struct{}, 10)
			silence, err := f.client.Subscribe(f.names.TokenSubject("s-"+app, "*"), func(m msg) { heard <- struct{}{} })
			if err != nil {
				t.Fatal(err)
			}
			f.say(app, "s-"+app, "hi")
			f.rests(app, "s-"+app, time.Minute)
			if len(heard) != want {
				t.Errorf("%s: %d pieces were shown, want %d", app, len(heard), want)
			}
			silence()
		}
	})
}
