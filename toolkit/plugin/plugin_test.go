package plugin_test

import (
	"errors"
	"reflect"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestAccessorsGiveWhatThePluginWasMadeOf(t *testing.T) {
	broken := errors.New("still open")
	full := plugin.Config{
		Name:                  "full",
		OnUserMessageCallback: func(agent.InvocationContext, *genai.Content) (*genai.Content, error) { return nil, nil },
		OnEventCallback:       func(agent.InvocationContext, *session.Event) (*session.Event, error) { return nil, nil },
		BeforeRunCallback:     func(agent.InvocationContext) (*genai.Content, error) { return nil, nil },
		AfterRunCallback:      func(agent.InvocationContext) {},
		BeforeAgentCallback:   func(agent.Context) (*genai.Content, error) { return nil, nil },
		AfterAgentCallback:    func(agent.Context) (*genai.Content, error) { return nil, nil },
		BeforeModelCallback:   func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return nil, nil },
		AfterModelCallback:    func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) { return nil, nil },
		OnModelErrorCallback:  func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) { return nil, nil },
		BeforeToolCallback:    func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { return nil, nil },
		AfterToolCallback: func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
			return nil, nil
		},
		OnToolErrorCallback: func(agent.Context, tool.Tool, map[string]any, error) (map[string]any, error) { return nil, nil },
		CloseFunc:           func() error { return broken },
	}
	for _, cfg := range []plugin.Config{full, {Name: "empty"}} {
		p, err := plugin.New(cfg)
		if err != nil || p.Name() != cfg.Name {
			t.Fatal(p, err)
		}
		v := reflect.ValueOf(cfg)
		for i := range v.NumField() {
			field := v.Type().Field(i).Name
			if field == "Name" || field == "CloseFunc" {
				continue
			}
			got := reflect.ValueOf(p).MethodByName(field).Call(nil)[0]
			if got.Pointer() != v.Field(i).Pointer() {
				t.Errorf("%s of %s is another function", field, cfg.Name)
			}
		}
		if err := p.Close(); (err != nil) != (cfg.CloseFunc != nil) || err != nil && !errors.Is(err, broken) {
			t.Errorf("%s closes with %v", cfg.Name, err)
		}
	}
	if _, err := plugin.New(plugin.Config{}); protocol.CodeOf(err) != protocol.CodeBadName {
		t.Errorf("a plugin without a name: %v", err)
	}
}
