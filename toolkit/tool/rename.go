package tool

import (
	"maps"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
)

// Prefix is ts with each tool's name after prefix and "_": read_file of Prefix(ts, "fs") is fs_read_file. It tells tools of
// several sets apart that are named alike. A name that is not legal then becomes its Alias. The set keeps its name. Prefix
// panics when ts is nil.
//
// What ts itself tells models about its tools, as a RequestProcessor, names them as they are named in ts.
func Prefix(ts Toolset, prefix string) Toolset {
	if ts == nil {
		panic("tool.Prefix: the toolset is nil")
	}
	return &setLayer{ts, func(_ agent.ReadonlyContext, t Tool) Tool { return ToolWithName(t, prefix+"_"+t.Name()) }}
}

// Rename is ts with some tools under another name: names has the new one under the one that the tool has in ts. Names that
// ts does not list are left alone, as its list may change. It panics when ts is nil. See Prefix.
func Rename(ts Toolset, names map[string]string) Toolset {
	if ts == nil {
		panic("tool.Rename: the toolset is nil")
	}
	names = maps.Clone(names)
	return &setLayer{ts, func(_ agent.ReadonlyContext, t Tool) Tool {
		if name, ok := names[t.Name()]; ok {
			return ToolWithName(t, name)
		}
		return t
	}}
}

// ToolWithName is t under another name, which everything but t itself goes by: the model, registry, policy, confirmations.
// A name that is not legal becomes its Alias, and the description then says the original. It panics when t is nil.
//
// Only the name here changes: of Pool(name) there is nothing else here, so that naming it anew makes a tool that no agent
// takes.
func ToolWithName(t Tool, name string) Tool {
	if t == nil {
		panic("tool.ToolWithName: the tool is nil")
	}
	legal := Alias(name)
	if legal == t.Name() {
		return t
	}
	note := ""
	if legal != name || protocol.CheckName(t.Name()) != nil {
		note = "Its own name is " + visible(Original(t)) + "."
	}
	return relabel(t, legal, func(text string) string { return withNote(text, note) })
}

// ToolWithDescription is t with another description for the model, of at most 4 KiB; that a tool is long-running is said
// below it all the same. It panics when t is nil. Of Pool(name) it makes a tool that no agent takes: its workers describe it.
func ToolWithDescription(t Tool, text string) Tool {
	if t == nil {
		panic("tool.ToolWithDescription: the tool is nil")
	}
	return relabel(t, t.Name(), func(was string) string {
		if strings.HasSuffix(was, LongRunningNote) {
			return withNote(text, LongRunningNote)
		}
		return text
	})
}

func relabel(t Tool, name string, describe func(string) string) Tool {
	if IsPool(t) {
		return named{t, name}
	}
	l := relabelled{layer{t}, name, describe}
	if r, ok := AsRunnable(t); ok {
		return &relabelledRunnable{l, r}
	}
	return &l
}

// relabelled is a tool with another name or description.
type relabelled struct {
	layer
	name     string
	describe func(was string) string
}

func (r *relabelled) Name() string        { return r.name }
func (r *relabelled) Description() string { return r.describe(r.Tool.Description()) }

type relabelledRunnable struct {
	relabelled
	run Runnable
}

func (r *relabelledRunnable) Run(ctx Context, args any) (map[string]any, error) {
	return r.run.Run(ctx, args)
}

func (r *relabelledRunnable) Declaration() *genai.FunctionDeclaration {
	fd := r.run.Declaration()
	if fd == nil {
		return nil
	}
	d := *fd
	d.Name = r.name
	if d.Description != "" {
		d.Description = r.describe(d.Description)
	}
	return &d
}

// withNote leaves the note out where it stands already, and where it would make the description too long.
func withNote(text, note string) string {
	switch {
	case note == "" || strings.Contains(text, note):
		return text
	case text == "":
		return note
	case len(text)+len(note)+2 > protocol.MaxDescription:
		return text
	}
	return text + "\n\n" + note
}
