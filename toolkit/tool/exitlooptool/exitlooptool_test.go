package exitlooptool_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

func exit(t *testing.T) tool.Tool {
	t.Helper()
	made, err := exitlooptool.New()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTheSuite(t *testing.T) {
	tooltest.Run(t, func() tool.Tool { return exit(t) },
		tooltest.Case{Name: "done", Args: `{}`, Want: `{"result":{}}`},
		tooltest.Case{Name: "with arguments", Args: `{"reason":"done"}`, Refused: true})
}

// On a worker it asks the same as when its turn answers it.
func TestItEndsTheLoopWithoutASummary(t *testing.T) { // H70
	ready, err := invoke.New(exit(t))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ready.Run(t.Context(), invoke.Call{Envelope: protocol.Envelope{
		V: protocol.Version, App: "app", User: "me", Session: "s", Call: "c", Tool: exitlooptool.Name, Effect: protocol.EffectRead, Args: json.RawMessage(`{}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&protocol.Actions{Escalate: true, SkipSummarization: true}, r.Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestItIsToldFromPoolsOfItsName(t *testing.T) {
	if !exitlooptool.Is(exit(t)) || exitlooptool.Is(tool.Pool(exitlooptool.Name)) || exitlooptool.Is(nil) {
		t.Error("Is does not tell what New made")
	}
}
