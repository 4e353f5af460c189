package turn

import (
	"fmt"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// checkPairs is the invariant of the package. first is the place of the first of contents in the conversation.
func checkPairs(contents []*genai.Content, first int) error {
	for i := 0; i < len(contents); i++ {
		calls := functionCalls(contents[i])
		var responses []*genai.FunctionResponse
		for _, p := range contents[i].Parts {
			if p.FunctionResponse != nil {
				responses = append(responses, p.FunctionResponse)
			}
		}
		if len(responses) > 0 {
			return unpaired(first+i, "responses without calls before them")
		}
		if len(calls) == 0 {
			continue
		}
		if contents[i].Role != genai.RoleModel {
			return unpaired(first+i, "calls that no model made")
		}
		i++
		if i == len(contents) || contents[i].Role != genai.RoleUser || len(contents[i].Parts) != len(calls) {
			return unpaired(first+i, fmt.Sprintf("no content with %d responses", len(calls)))
		}
		for j, p := range contents[i].Parts {
			r := p.FunctionResponse
			if r == nil || r.Name != calls[j].Name || r.ID != calls[j].ID || len(r.Response) == 0 {
				return unpaired(first+i, fmt.Sprintf("no response to call %d", j))
			}
		}
	}
	return nil
}

func unpaired(i int, what string) error {
	return protocol.Errorf(protocol.CodeInternal, "the conversation has %s at content %d: it was not sent", what, i)
}
