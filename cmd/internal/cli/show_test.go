package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

func TestWhatIsLeftIsRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "over", 4500 * time.Millisecond: "in 5s", 5*time.Minute - time.Second: "in 5m", 90 * time.Second: "in 90s",
		2*time.Hour - time.Minute: "in 2h", 7*24*time.Hour - time.Second: "in 7d",
	} {
		if got := in(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestTheAnswersOfACallAreToldApart(t *testing.T) {
	end := func(round int, outcome protocol.Outcome, value string) client.CallEnd {
		return client.CallEnd{Call: "c1", Tool: "report", Session: "s1", Round: round, Stored: time.Now(), Result: protocol.Result{Outcome: outcome, Value: json.RawMessage(value), Worker: "w1"}}
	}
	got := endsText([]client.CallEnd{end(0, protocol.OutcomePending, `1`), end(1, protocol.OutcomeAsks, `2`), end(2, protocol.OutcomeCompleted, `3`)})
	want := "call         c1\ntool         report\nsession      s1\n\nso far       pending, 0s ago, by w1\n1\n\nasked        asks, 0s ago, by w1\n2\n\nended        completed, 0s ago, by w1\n3\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

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
