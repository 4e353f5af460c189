package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// goodTour is one in which everything holds.
func goodTour(t *testing.T) *Tour {
	t.Helper()
	dir, files, err := choose(folder(t, nil), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tour := &Tour{
		Dir: dir, Files: files, Answer: rightAnswer(files), Parallel: Parallel{Calls: 3, Workers: 2},
		Killed: Killed{Process: Process{Name: "worker-1", PID: 7}, Calls: []string{"c0"}},
		Trace:  []*client.Span{{Name: "invoke_agent archivist", Process: "k"}},
	}
	for i := range 3 * asked {
		call := Call{ID: fmt.Sprintf("c%d", i), Tool: toolCount, Outcome: protocol.OutcomeCompleted, Worker: "worker-2", Attempt: 1}
		if i < asked {
			call.Tool = toolMeasure
			tour.Effects = append(tour.Effects, Effect{Key: call.ID})
		}
		tour.Calls = append(tour.Calls, call)
		tour.Trace[0].Children = append(tour.Trace[0].Children, &client.Span{
			Name: "execute_tool " + call.Tool, Process: "k", Children: []*client.Span{{Name: "execute_tool " + call.Tool, Process: call.Worker}},
		})
	}
	tour.Calls[0].Attempt = 2
	for i, name := range []string{toolPublish, toolPrint} {
		call := Call{ID: fmt.Sprintf("w%d", i), Tool: name, Outcome: protocol.OutcomeCompleted, Worker: "worker-2", Attempt: 1}
		tour.Calls, tour.Effects = append(tour.Calls, call), append(tour.Effects, Effect{Key: call.ID})
		tour.Trace[0].Children = append(tour.Trace[0].Children, &client.Span{
			Name: "execute_tool " + name, Process: "k2", Children: []*client.Span{{Name: "execute_tool " + name, Process: call.Worker}},
		})
	}
	tour.Waited = Waited{
		Line: "Together.", Call: "w0", Old: Process{PID: 8}, New: Process{PID: 9}, Drivers: []string{"k", "k2", "k2"}, Approver: approver, Published: rightPublished("Together."),
		Print: "w1", Sheets: 9, From: "local", Second: protocol.CodeAnswered, Printed: rightPrinted(9),
	}
	return tour
}

func TestAGoodTourPassesAllChecks(t *testing.T) {
	tour := goodTour(t)
	if tour.check(); !tour.OK || len(tour.Checks) != 7 {
		t.Errorf("%+v", tour.Checks)
	}
}

func TestEachCheckFailsForWhatItClaims(t *testing.T) {
	for name, c := range map[string]struct {
		check int
		spoil func(*Tour)
	}{
		"wrong number":             {0, func(t *Tour) { t.Answer = rightAnswer(t.Files[1:]) }},
		"no answer":                {0, func(t *Tour) { t.Answer = "" }},
		"one worker":               {1, func(t *Tour) { t.Parallel.Workers = 1 }},
		"nobody killed":            {2, func(t *Tour) { t.Killed = Killed{} }},
		"the dead one answered":    {2, func(t *Tour) { t.Calls[0].Worker = "worker-1" }},
		"first attempt answered":   {2, func(t *Tour) { t.Calls[0].Attempt = 1 }},
		"effect twice":             {3, func(t *Tour) { t.Effects = append(t.Effects, t.Effects[0]) }},
		"effect missing":           {3, func(t *Tour) { t.Effects = t.Effects[1:] }},
		"effect of somebody":       {3, func(t *Tour) { t.Effects = append(t.Effects, Effect{Key: "other"}) }},
		"call failed":              {3, func(t *Tour) { t.Calls[4].Outcome = protocol.OutcomeFailed }},
		"call without end":         {3, func(t *Tour) { t.Calls[4].Outcome = "" }},
		"call missing":             {3, func(t *Tour) { t.Calls = t.Calls[:8] }},
		"run unasked":              {4, func(t *Tour) { t.Waited.Early = t.Effects[:1] }},
		"agreed by nobody":         {4, func(t *Tour) { t.Waited.Approver = "" }},
		"nothing restarted":        {4, func(t *Tour) { t.Waited.New = t.Waited.Old }},
		"driven by the dead one":   {4, func(t *Tour) { t.Waited.Drivers = []string{"k", "k"} }},
		"not published":            {4, func(t *Tour) { t.Waited.Published = rightPublished("Apart.") }},
		"printed by a worker":      {5, func(t *Tour) { t.Waited.From = "worker-2" }},
		"a result twice":           {5, func(t *Tour) { t.Waited.Second = "" }},
		"another number of sheets": {5, func(t *Tour) { t.Waited.Printed = rightPrinted(8) }},
		"no spans of the workers":  {6, func(t *Tour) { t.Trace[0].Children[3].Children = nil }},
		"spans of the wrong place": {6, func(t *Tour) { t.Trace[0].Children[3].Children[0].Process = "k" }},
	} {
		t.Run(name, func(t *testing.T) {
			tour := goodTour(t)
			c.spoil(tour)
			if tour.check(); tour.OK || tour.Checks[c.check].OK || tour.Checks[c.check].Found == "" {
				t.Errorf("%+v", tour.Checks)
			}
		})
	}
}

func TestAFileThatChangedMeanwhileIsSaid(t *testing.T) {
	tour := goodTour(t)
	tour.Answer = "something else"
	path := filepath.Join(tour.Dir, tour.Files[1].Path)
	if err := os.WriteFile(path, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tour.check(); tour.Checks[0].Found != tour.Files[1].Path+" changed while the tour ran; make it again" {
		t.Error(tour.Checks[0].Found)
	}
}
