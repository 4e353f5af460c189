package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exectool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// Names of the tools.
const (
	toolMeasure  = "measure"
	toolCount    = "word_count"
	toolChecksum = "checksum"
	toolPublish  = "publish"
	toolPrint    = "print"
)

// Slots is how many calls of a tool one worker runs at once. The calls of the first turn are more than that, so that they
// need both workers.
var Slots = map[string]int{toolMeasure: asked - 1}

// Bench is the workplace of a worker's tools.
type Bench struct {
	Worker string // its name
	Dir    string // that paths start from
	Ledger string // file of effects
	Gate   string // file without which measure goes no further than to its effect
}

type pathArgs struct {
	Path string `json:"path" jsonschema:"the file"`
}

type measured struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

// Tools are what a worker of the tour serves. Where a machine has no wc or sha256sum a function takes its place.
func (b Bench) Tools() ([]tool.Tool, error) {
	measure, err := functiontool.New(functiontool.Config{
		Name: toolMeasure, Description: "Measures a file and enters it in the ledger.", Effect: tool.Idempotent,
	}, b.measure)
	if err != nil {
		return nil, err
	}
	count, err := b.command(toolCount, "Counts the words of a file.", []string{"wc", "-w"}, func(f File) string { return fmt.Sprint(f.Words) })
	if err != nil {
		return nil, err
	}
	checksum, err := b.command(toolChecksum, "Computes the SHA-256 of a file.", []string{"sha256sum"}, func(f File) string { return f.SHA256 })
	if err != nil {
		return nil, err
	}
	publish, err := functiontool.New(functiontool.Config{
		Name: toolPublish, Description: "Publishes a line. Somebody must agree.", RequireConfirmation: true,
	}, b.publish)
	if err != nil {
		return nil, err
	}
	printed, err := functiontool.New(functiontool.Config{
		Name: toolPrint, Description: "Orders a print of a line, which takes long.", IsLongRunning: true,
	}, b.order)
	if err != nil {
		return nil, err
	}
	return []tool.Tool{measure, count, checksum, publish, printed}, nil
}

type lineArgs struct {
	Line string `json:"line" jsonschema:"the line"`
}

type published struct {
	SHA256 string `json:"sha256"`
}

// publish has an effect that a person must agree to.
func (b Bench) publish(ctx tool.Context, args lineArgs) (published, error) {
	err := ledger(b.Ledger).enter(Effect{Key: ctx.FunctionCallID(), Path: toolPublish, Worker: b.Worker, Attempt: ctx.Attempt()})
	return published{SHA256: digest(args.Line)}, err
}

type ticket struct {
	Status string `json:"status"`
}

// order answers with what the model may know until the print is ready. Whoever prints gives the result.
func (b Bench) order(ctx tool.Context, _ lineArgs) (*ticket, error) {
	err := ledger(b.Ledger).enter(Effect{Key: ctx.FunctionCallID(), Path: toolPrint, Worker: b.Worker, Attempt: ctx.Attempt()})
	return &ticket{Status: "ordered"}, err
}

// measure says that it has started, and waits with its effect until the gate is open.
func (b Bench) measure(ctx tool.Context, args pathArgs) (measured, error) {
	text, err := os.ReadFile(filepath.Join(b.Dir, args.Path))
	if err != nil {
		return measured{}, err
	}
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := os.Stat(b.Gate); err == nil {
			break
		}
		ctx.Progress(0, "before its effect") // again and again: whoever watches may have come late
		select {
		case <-look.C:
		case <-ctx.Done():
			return measured{}, ctx.Err()
		}
	}
	err = ledger(b.Ledger).enter(Effect{Key: ctx.FunctionCallID(), Path: args.Path, Worker: b.Worker, Attempt: ctx.Attempt()})
	return measured{Path: args.Path, Bytes: len(text)}, err
}

var pathSchema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"the file"}},"required":["path"],"additionalProperties":false}`)

// command is a program that answers "FACT PATH", or a function that does.
func (b Bench) command(name, description string, argv []string, fact func(File) string) (tool.Tool, error) {
	if _, err := exec.LookPath(argv[0]); err == nil {
		return exectool.New(exectool.Config{
			Name: name, Description: description, Argv: append(argv, "--", "{path}"), Schema: pathSchema,
			Dir: b.Dir, Env: []string{"LC_ALL=C"}, Effect: tool.Read,
		})
	}
	return functiontool.New(functiontool.Config{Name: name, Description: description, Effect: tool.Read},
		func(_ tool.Context, args pathArgs) (string, error) {
			f, err := look(b.Dir, args.Path)
			return fact(f) + " " + args.Path, err
		})
}
