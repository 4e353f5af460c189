package host

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// listing is what the sets offer at one moment.
type listing struct {
	tools  []tool.Tool
	decls  []protocol.Declaration
	failed bool // a set could not be listed
}

// signature tells two listings apart whose tools are declared or set otherwise.
func (l *listing) signature() string {
	var b strings.Builder
	for _, d := range l.decls {
		raw, _ := json.Marshal(d) // schemas were compiled: they are JSON
		b.Write(raw)
	}
	return b.String()
}

func (h *host) list(ctx context.Context) listing {
	var l listing
	var names tool.Names
	told := map[string]bool{}
	tell := func(text string, args ...any) {
		key := text + fmt.Sprint(args...)
		if told[key] = true; !h.told[key] {
			h.cfg.Logger.Warn(text, args...)
		}
	}
	add := func(owner string, t tool.Listed) {
		it, err := invoke.New(t.Tool)
		if err != nil {
			tell("a tool cannot be served", "toolset", owner, "tool", t.Name, "reason", protocol.ProblemOf(err).Message)
			return
		}
		if err := names.Take(t.Tool, owner); err != nil {
			tell("a tool is left out", "toolset", owner, "error", err)
			return
		}
		l.tools, l.decls = append(l.tools, t.Tool), append(l.decls, it.Declaration())
	}
	for _, t := range h.cfg.Tools {
		add("the worker itself", tool.Listed{Name: t.Name(), Tool: t})
	}
	for i, s := range h.sets {
		tools, err := tool.List(asker{ctx}, s)
		if err != nil {
			l.failed = true
			if ctx.Err() == nil {
				tell("a toolset cannot be listed", "toolset", tool.NameOf(s), "error", err)
			}
			tools = h.last[i]
		}
		h.last[i] = tools
		for _, t := range tools {
			add(fmt.Sprintf("toolset %d, %s", i+1, tool.NameOf(s)), t)
		}
	}
	h.told = told
	return l
}

// asker is whoever lists a set on a worker: no run, no user, no state.
type asker struct{ context.Context }

func (asker) UserContent() *genai.Content          { return nil }
func (asker) InvocationID() string                 { return "" }
func (asker) AgentName() string                    { return "" }
func (asker) UserID() string                       { return "" }
func (asker) AppName() string                      { return "" }
func (asker) SessionID() string                    { return "" }
func (asker) Branch() string                       { return "" }
func (asker) ReadonlyState() session.ReadonlyState { return noState{} }

type noState struct{}

func (noState) Get(string) (any, error)     { return nil, session.ErrStateKeyNotExist }
func (noState) All() iter.Seq2[string, any] { return func(func(string, any) bool) {} }
