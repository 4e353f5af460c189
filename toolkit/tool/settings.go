package tool

import (
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
)

// Configured is a Runnable that brings settings of its pool. Without it the zero Settings hold.
type Configured interface {
	Settings() Settings
}

// Effect is what running a tool does to the world.
type Effect = protocol.Effect

// The effect classes. The zero value means AtMostOnce.
const (
	Read       = protocol.EffectRead
	Idempotent = protocol.EffectIdempotent
	AtMostOnce = protocol.EffectAtMostOnce
)

// Settings say how the fabric treats calls of a tool. Zero fields take the defaults of protocol.Declaration.
type Settings struct {
	Effect       Effect
	QueueTimeout time.Duration // waiting for a worker
	Timeout      time.Duration // of one attempt
	Attempts     int           // retryable failures included
	MaxActive    int           // running at once over the whole pool
	ParkTimeout  time.Duration // waiting for a person, or for a result from outside
	Confirm      bool          // a person must agree to each call
}

// WithSettings is ts with other settings of its tools: change is given each tool's name in ts and its settings, and may write
// them. It is called each time the set is listed. WithSettings panics when an argument is nil.
func WithSettings(ts Toolset, change func(name string, s *Settings)) Toolset {
	if ts == nil {
		panic("tool.WithSettings: the toolset is nil")
	}
	if change == nil {
		panic("tool.WithSettings: the function is nil")
	}
	return &setLayer{ts, func(_ agent.ReadonlyContext, t Tool) Tool {
		return ToolWithSettings(t, func(s *Settings) { change(t.Name(), s) })
	}}
}

// ToolWithSettings is t with what change makes of its settings, once. It panics when an argument is nil. Of Pool(name) it
// makes a tool that no agent takes: a pool's settings are those that its workers bring.
func ToolWithSettings(t Tool, change func(*Settings)) Tool {
	if t == nil {
		panic("tool.ToolWithSettings: the tool is nil")
	}
	if change == nil {
		panic("tool.ToolWithSettings: the function is nil")
	}
	r, runs := AsRunnable(t)
	if !runs {
		if _, shapes := As[RequestProcessor](t); shapes {
			return t // nobody calls it
		}
		return named{t, t.Name()}
	}
	s := settingsOf(t)
	change(&s)
	return &configured{runLayer{layer{t}, r}, s}
}

// configured is a tool with settings that are not its own.
type configured struct {
	runLayer
	settings Settings
}

func (c *configured) Settings() Settings { return c.settings }

func settingsOf(t Tool) Settings {
	if c, ok := As[Configured](t); ok {
		return c.Settings()
	}
	return Settings{}
}
