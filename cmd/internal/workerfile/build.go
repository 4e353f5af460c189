package workerfile

import (
	"context"
	"maps"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exectool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

// Build makes the tool.
func (t Tool) Build() (tool.Tool, error) {
	if t.HTTP != nil {
		return t.HTTP.build(&t)
	}
	cfg := exectool.Config{
		Name: t.Name, Description: t.Description, Argv: t.Command, Schema: t.Schema, Stdin: t.Stdin, Dir: t.Dir,
		Effect: t.Effect, Timeout: t.Timeout, QueueTimeout: t.QueueTimeout, Attempts: t.Attempts, MaxActive: t.MaxActive,
		LongRunning: t.LongRunning, ParkTimeout: t.ParkTimeout, Confirm: t.Confirm,
	}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		cfg.Env = append(cfg.Env, name+"="+t.Env[name])
	}
	return exectool.New(cfg)
}

// Build makes the file's tools. Operations of documents that are no tools are told to skipped, one at a time; one whose name
// another tool has is such. A tool or a document that cannot be served at all is code usage, and all such are named. It ends
// with ctx.
func (f File) Build(ctx context.Context, skipped func(set string, s httptool.Skipped)) ([]tool.Tool, error) {
	var tools []tool.Tool
	var names tool.Names
	var faults string
	fail := func(err error) { faults += "\n" + protocol.ProblemOf(err).Message }
	for _, t := range f.Tools {
		built, err := t.Build()
		if err != nil {
			fail(err)
			continue
		}
		if err := names.Take(built, "tools"); err != nil {
			fail(protocol.Errorf(protocol.CodeUsage, "%s", err))
		}
		tools = append(tools, built)
	}
	for i := range f.OpenAPI {
		o := &f.OpenAPI[i]
		set, left, err := o.Build(ctx)
		if err != nil {
			fail(err)
			continue
		}
		for _, s := range left {
			skipped(o.Name, s)
		}
		listed, err := set.Tools(nil)
		if err != nil {
			fail(err)
		}
		for _, t := range listed {
			if err := names.Take(t, "openapi "+o.Name); err != nil {
				skipped(o.Name, httptool.Skipped{Operation: t.Name(), Reason: err.Error()})
				continue
			}
			tools = append(tools, t)
		}
	}
	if faults == "" && len(tools) == 0 {
		fail(protocol.Errorf(protocol.CodeUsage, "no operation of the documents can be served as a tool"))
	}
	if faults != "" {
		return nil, protocol.Errorf(protocol.CodeUsage, "%s", faults[1:])
	}
	return tools, nil
}
