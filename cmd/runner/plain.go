package runner

import (
	"encoding/json"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/session"
)

// plain makes the numbers of an event what programs expect of JSON, float64, where that loses no digit. The event is ours.
func plain(ev *session.Event) *session.Event {
	if ev.Content != nil {
		for _, p := range ev.Content.Parts {
			if p == nil {
				continue
			}
			if c := p.FunctionCall; c != nil {
				plainValue(c.Args)
			}
			if r := p.FunctionResponse; r != nil {
				plainValue(r.Response)
			}
		}
	}
	plainValue(ev.Actions.StateDelta)
	return ev
}

// plainValue changes what v holds, and returns what stands for v itself.
func plainValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil {
			if back, err := json.Marshal(f); err == nil && string(back) == v.String() {
				return f
			}
		}
	case map[string]any:
		for key, one := range v {
			v[key] = plainValue(one)
		}
	case []any:
		for i, one := range v {
			v[i] = plainValue(one)
		}
	case *genai.FunctionCall:
		plainValue(v.Args)
	}
	return v
}
