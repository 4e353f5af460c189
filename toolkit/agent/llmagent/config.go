// Package llmagent is the agent that asks a model and runs the tools it asks for. It is data: the loop itself is the
// coordinator's. Names follow Google's ADK.
package llmagent

import (
	"encoding/json"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Config describes an agent. Name and Model are required.
type Config struct {
	Name        string // also the app under which coordinators serve the agent, unless it is a sub-agent; see protocol.CheckName
	Description string // what other agents read when they choose whom to hand over to
	Model       model.LLM

	// SubAgents are the agents below this one, each with a name of its own in the whole tree. An agent that may hand over
	// to others is offered the tool transfer_to_agent: to its sub-agents, to its parent and to its parent's other
	// sub-agents. The other agent goes on with the same run, with its own model, instruction, tools and limits; the next
	// run begins with whoever spoke last. Coordinators serve trees of which all agents are made by New.
	SubAgents []agent.Agent
	// DisallowTransferToParent keeps the agent from handing over to its parent. A run that it ends is not its session's
	// last word to it: the next one begins with the root of the tree.
	DisallowTransferToParent bool
	// DisallowTransferToPeers keeps the agent from handing over to its parent's other sub-agents.
	DisallowTransferToPeers bool

	// Instruction is what the model is told before the conversation. {name} stands for the value of a state key, also
	// {app:name}, {user:name} and {temp:name}; {name?} is empty when the key has no value, without ? that is an error. What
	// is no such name stays as it is.
	Instruction string
	// InstructionProvider makes the instruction for each request, instead of Instruction and without templates.
	InstructionProvider InstructionProvider
	// GlobalInstruction stands before Instruction, under the same rules, and before that of every agent below. Only that of
	// a tree's root counts.
	GlobalInstruction         string
	GlobalInstructionProvider InstructionProvider

	// GenerateContentConfig holds the model's settings. Instruction, tools and output schema have fields of their own and
	// are refused in it. Nil is the model's defaults.
	GenerateContentConfig *genai.GenerateContentConfig
	IncludeContents       IncludeContents

	// OutputKey is the state key that gets the text of each final answer, thoughts left out; the parsed JSON when there is
	// an output schema. Empty is none.
	OutputKey string
	// OutputSchema is what a final answer must fit, as JSON. Beside tools the model is told by instruction, otherwise the
	// provider enforces it; the answer is checked in both cases. At most one of OutputSchema and OutputJSONSchema is set.
	OutputSchema     *genai.Schema
	OutputJSONSchema json.RawMessage

	Tools    []tool.Tool
	Toolsets []tool.Toolset

	BeforeAgentCallbacks  []agent.BeforeAgentCallback
	AfterAgentCallbacks   []agent.AfterAgentCallback
	BeforeModelCallbacks  []BeforeModelCallback
	AfterModelCallbacks   []AfterModelCallback
	OnModelErrorCallbacks []OnModelErrorCallback
	BeforeToolCallbacks   []BeforeToolCallback
	AfterToolCallbacks    []AfterToolCallback
	OnToolErrorCallbacks  []OnToolErrorCallback

	Limits Limits
}

// InstructionProvider makes an instruction. It runs at the live end of a session only, perhaps more than once for one
// request, and must not block.
type InstructionProvider func(agent.ReadonlyContext) (string, error)

// IncludeContents says how much of the conversation a model is shown.
type IncludeContents string

// The choices. The zero value means IncludeContentsDefault.
const (
	IncludeContentsDefault IncludeContents = "default" // all of it
	IncludeContentsNone    IncludeContents = "none"    // only the run it is in, with what other agents said and did in it
)

// Limits bound what one run may use. A zero field takes its default.
type Limits struct {
	ModelCalls   int           // requests to the model in one run
	CallsPerTurn int           // calls that one answer of the model may ask for; the rest is refused
	WallTime     time.Duration // from the input to the end of the run
}

// The defaults of Limits.
const (
	DefaultModelCalls   = 50
	DefaultCallsPerTurn = 64
	DefaultWallTime     = 15 * time.Minute
)

func (l Limits) filled() Limits {
	if l.ModelCalls == 0 {
		l.ModelCalls = DefaultModelCalls
	}
	if l.CallsPerTurn == 0 {
		l.CallsPerTurn = DefaultCallsPerTurn
	}
	if l.WallTime == 0 {
		l.WallTime = DefaultWallTime
	}
	return l
}
