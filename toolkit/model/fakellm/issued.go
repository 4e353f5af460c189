package fakellm

import (
	"encoding/base64"
	"encoding/json"
	"sync"

	"google.golang.org/genai"
)

// maxIssued bounds the calls that are remembered; beyond it the server forgets all and checks nothing of the past.
const maxIssued = 10_000

// issued remembers which calls were given out, and with which thought signatures, to tell when one was dropped, changed
// or invented.
type issued struct {
	mu   sync.Mutex
	seen map[string]map[string]bool // call -> signatures, "" for none
}

func newIssued() *issued { return &issued{seen: map[string]map[string]bool{}} }

// identity is a call without its signature: name, id and arguments, in one spelling. Args of a call that was streamed in
// fragments are not known here, so such calls count by name and id.
func identity(f *genai.FunctionCall, args bool) string {
	key := []any{f.Name, f.ID}
	if args && len(f.Args) > 0 {
		key = append(key, f.Args)
	}
	b, _ := json.Marshal(key)
	return string(b)
}

func (i *issued) note(parts []*genai.Part) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range parts {
		f := p.FunctionCall
		if f == nil || f.Name == "" {
			continue
		}
		if len(i.seen) >= maxIssued {
			clear(i.seen)
		}
		key := identity(f, true)
		if f.WillContinue != nil || len(f.PartialArgs) > 0 {
			key = "streamed " + identity(f, false)
		}
		if i.seen[key] == nil {
			i.seen[key] = map[string]bool{}
		}
		i.seen[key][base64.StdEncoding.EncodeToString(p.ThoughtSignature)] = true
	}
}

// check refuses calls of the history whose signature is not one they were given out with. Calls that were never given
// out here are let pass. Its errors are *apiFault.
func (i *issued) check(contents []*genai.Content) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, c := range contents {
		for k, p := range c.Parts {
			f := p.FunctionCall
			if f == nil {
				continue
			}
			given := i.seen[identity(f, true)]
			if given == nil {
				given = i.seen["streamed "+identity(f, false)]
			}
			text := base64.StdEncoding.EncodeToString(p.ThoughtSignature)
			switch {
			case given == nil || given[text]:
			case text == "":
				return invalid("contents[%d].parts[%d]: Function call %q is missing a thought_signature in functionCall parts. This is required for tools to work correctly.", n, k, f.Name)
			default:
				return invalid("contents[%d].parts[%d]: Thought signature is not valid: function call %q was not given out with %q.", n, k, f.Name, text)
			}
		}
	}
	return nil
}
