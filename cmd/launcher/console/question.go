package console

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

func isQuestion(p *genai.Part) bool {
	return p != nil && p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName
}

// ask asks the person about the calls that wait, one after another, and returns the message with their words; nil when none
// was given. What is put off is asked again after the next message.
func (t *talk) ask(ctx context.Context) (*genai.Content, error) {
	answers := &genai.Content{Role: genai.RoleUser}
	asked := t.open
	t.open = nil
	for _, q := range asked {
		if err := t.question(q); err != nil {
			return nil, err
		}
		word, err := t.word(ctx)
		if err != nil {
			return nil, err
		}
		if word == later {
			t.open = append(t.open, q)
			fmt.Fprintln(t.out, "The call waits; what you say meanwhile is taken up afterwards.")
			continue
		}
		answers.Parts = append(answers.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{
			ID: q.ID, Name: q.Name, Response: map[string]any{"confirmed": word == yes},
		}})
	}
	if len(answers.Parts) == 0 {
		return nil, nil
	}
	return answers, nil
}

// The words a person may say.
const (
	yes   = "y"
	no    = "n"
	later = "l"
)

func (t *talk) word(ctx context.Context) (string, error) {
	for {
		line, err := t.read(ctx, "Run it? y = yes, n = no, l = decide later: ")
		if err != nil {
			return "", err
		}
		switch word := strings.ToLower(line); word {
		case yes, "yes":
			return yes, nil
		case no, "no":
			return no, nil
		case later, "later":
			return later, nil
		}
	}
}

// question shows all of what would run: nothing that a tool or a model wrote may hide a part of it.
func (t *talk) question(q *genai.FunctionCall) error {
	original, err := toolconfirmation.OriginalCallFrom(q)
	if err != nil {
		return err
	}
	args, err := json.Marshal(original.Args)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "\n%s waits for your word: %s\n", term.EscapeLine(original.Name), term.Reveal(string(args)))
	raw, err := json.Marshal(q.Args["toolConfirmation"])
	var asks toolconfirmation.ToolConfirmation
	if err != nil || json.Unmarshal(raw, &asks) != nil {
		return nil // the call itself is shown
	}
	if asks.Hint != "" && asks.Hint != toolconfirmation.Hint(original.Name) {
		fmt.Fprintf(t.out, "%s\n", term.Reveal(asks.Hint))
	}
	if payload, err := json.Marshal(asks.Payload); err == nil && asks.Payload != nil {
		fmt.Fprintf(t.out, "It shows: %s\n", term.Reveal(string(payload)))
	}
	return nil
}
