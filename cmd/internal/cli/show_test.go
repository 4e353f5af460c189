package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

func TestAQuestionThatTheArgumentsHoldIsShownOnce(t *testing.T) {
	const question = `"server":"ev","message":"Who?","requested_schema":{"type":"object"}`
	for args, want := range map[string]int{"{" + question + `,"about":{"tool":"x"}}`: 1, `{"server":"ev","message":"Who?"}`: 2, `{}`: 1} {
		var screen bytes.Buffer
		a := &app{out: term.Screen{Writer: &screen}}
		err := a.writeParked(&client.Parked{Parked: protocol.Parked{Call: "c1", Tool: "ev_elicit", Args: json.RawMessage(args), Confirmation: &protocol.Confirmation{Payload: json.RawMessage("{" + question + "}")}}})
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(screen.String(), `"Who?"`); n != want || !strings.Contains(screen.String(), "--payload") {
			t.Errorf("%s: it is shown %d times, want %d:\n%s", args, n, want, &screen)
		}
	}
}

func TestWhatOnlyProgramsUnderstandIsNotShownToPeople(t *testing.T) {
	for given, want := range map[string]string{
		toolconfirmation.Hint("pay"):                        "",
		toolconfirmation.Hint("pay") + "\n\nOver 1000 EUR.": "Over 1000 EUR.",
		toolconfirmation.Hint("other"):                      toolconfirmation.Hint("other"),
	} {
		p := &client.Parked{Parked: protocol.Parked{Tool: "pay", Confirmation: &protocol.Confirmation{Hint: given}}}
		if got := hint(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
