package turn

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

// targets are the agents that m may hand over to: its sub-agents, its parent, and its parent's other sub-agents.
func (m *member) targets() []*llmagent.LLMAgent {
	var all []*llmagent.LLMAgent
	for _, sub := range m.SubAgents() {
		all = append(all, sub.(*llmagent.LLMAgent)) // NewTree has seen to it
	}
	if m.parent == nil {
		return all
	}
	cfg := m.Config()
	if !cfg.DisallowTransferToParent {
		all = append(all, m.parent.LLMAgent)
	}
	if !cfg.DisallowTransferToPeers {
		for _, peer := range m.parent.SubAgents() {
			if peer.Name() != m.Name() {
				all = append(all, peer.(*llmagent.LLMAgent))
			}
		}
	}
	return all
}

// legal are the names that a call of transfer_to_agent may have.
type legal []string

type transferArgs struct {
	AgentName string `json:"agent_name"`
}

// Normalize is a Schema's: it names those who may be meant.
func (l legal) Normalize(raw json.RawMessage) (json.RawMessage, error) {
	var args transferArgs
	if err := protocol.Decode(raw, &args, protocol.ArgsLimits); err != nil {
		p := protocol.ProblemOf(err)
		return nil, protocol.Errorf(p.Code, "%s; it is {\"agent_name\": NAME}, where NAME is one of: %s", p.Message, strings.Join(l, ", "))
	}
	if slices.Contains(l, args.AgentName) {
		return raw, nil
	}
	text := fmt.Sprintf("there is no agent %.64q to transfer to.", args.AgentName)
	if meant := protocol.Meant(args.AgentName, l); meant != "" {
		text += " Did you mean " + meant + "?"
	}
	return nil, protocol.Errorf(protocol.CodeSchemaViolation, "%s agent_name is one of: %s", text, strings.Join(l, ", "))
}

// transferOffer offers transfer_to_agent to m.
func (m *member) transferOffer(targets []*llmagent.LLMAgent) Offer {
	names := make(legal, len(targets))
	for i, a := range targets {
		names[i] = a.Name()
	}
	parameters, _ := encode(map[string]any{
		"type": "object", "required": []string{"agent_name"}, "additionalProperties": false,
		"properties": map[string]any{"agent_name": map[string]any{"type": "string", "enum": names, "description": "The agent that goes on."}},
	})
	d := protocol.Declaration{
		V: protocol.Version, Name: llmagent.TransferTool, Parameters: parameters, Effect: protocol.EffectRead,
		Description: "Hands the conversation over to another agent, which answers from then on. Use it when that agent suits the user's question better, by its description.",
	}
	return Offer{Declaration: d, Pinned: d.Digest(), Schema: names, Instruction: m.transferInstruction(targets), Answer: func(args json.RawMessage) protocol.Result {
		var to transferArgs
		_ = json.Unmarshal(args, &to) // Normalize has read it
		return recordedAnswer(protocol.Actions{TransferToAgent: to.AgentName})
	}}
}

// transferInstruction is what m's model is told about the others.
func (m *member) transferInstruction(targets []*llmagent.LLMAgent) string {
	var b strings.Builder
	b.WriteString("There are other agents that you can hand this conversation over to:\n")
	for _, a := range targets {
		fmt.Fprintf(&b, "\nAgent name: %s\nAgent description: %s\n", a.Name(), a.Description())
	}
	fmt.Fprintf(&b, "\nAnswer the question yourself when, by your own description, you are the one for it. When another agent is, by its description, "+
		"call the function `%s` with that agent's name, and write nothing beside the call. These agents, and no others, can be named: ", llmagent.TransferTool)
	for i, a := range targets {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + a.Name() + "`")
	}
	b.WriteString(".")
	if m.parent != nil && !m.Config().DisallowTransferToParent {
		fmt.Fprintf(&b, "\n\nWhen neither you nor any of the others is the one for the question, hand over to your parent agent `%s`.", m.parent.Name())
	}
	return b.String()
}
