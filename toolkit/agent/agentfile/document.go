package agentfile

import (
	"encoding/json"
	"reflect"
	"time"

	"google.golang.org/genai"
)

// document is an LlmAgent as a file spells it.
type document struct {
	AgentClass  string `yaml:"agent_class"`
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Model       string `yaml:"model"`
	Instruction string `yaml:"instruction"`

	GenerateContentConfig *genai.GenerateContentConfig `yaml:"generate_content_config"`
	IncludeContents       string                       `yaml:"include_contents"`
	OutputKey             string                       `yaml:"output_key"`
	OutputSchema          json.RawMessage              `yaml:"output_schema"`
	Tools                 []toolEntry                  `yaml:"tools"`
	Toolfabric            extras                       `yaml:"toolfabric"`

	SubAgents                subAgents `yaml:"sub_agents"`
	DisallowTransferToParent bool      `yaml:"disallow_transfer_to_parent"`
	DisallowTransferToPeers  bool      `yaml:"disallow_transfer_to_peers"`

	InputSchema refused `yaml:"input_schema" why:"input schemas are not yet supported: describe the input in the instruction"`
	BeforeAgent refused `yaml:"before_agent_callbacks" why:"callbacks are code, which a file cannot hold, and are not yet supported"`
	AfterAgent  refused `yaml:"after_agent_callbacks" why:"callbacks are code, which a file cannot hold, and are not yet supported"`
	BeforeModel refused `yaml:"before_model_callbacks" why:"callbacks are code, which a file cannot hold, and are not yet supported"`
	AfterModel  refused `yaml:"after_model_callbacks" why:"callbacks are code, which a file cannot hold, and are not yet supported"`
	BeforeTool  refused `yaml:"before_tool_callbacks" why:"callbacks are code, which a file cannot hold, and are not yet supported"`
	AfterTool   refused `yaml:"after_tool_callbacks" why:"callbacks are code, which a file cannot hold, and are not yet supported"`
}

type toolEntry struct {
	Name string  `yaml:"name"`
	Args refused `yaml:"args" why:"a pool's tool takes its settings where its worker is deployed, not here"`
}

// extras are the settings that only this fabric has.
type extras struct {
	Limits limits      `yaml:"limits"`
	Skills skillsEntry `yaml:"skills"`
}

type limits struct {
	ModelCalls   int           `yaml:"model_calls"`
	CallsPerTurn int           `yaml:"calls_per_turn"`
	WallTime     time.Duration `yaml:"wall_time"`
}

// elsewhere are the model settings that an agent file has its own keys for, or that are not a file's to set.
var elsewhere = map[string]string{
	"SystemInstruction":  "it is set by instruction",
	"Tools":              "they are set by the agent's own tools",
	"ResponseSchema":     "it is set by output_schema",
	"ResponseJsonSchema": "it is set by output_schema",
	"HTTPOptions":        "it is the model's configuration, not the agent's",
}

// refusal is why a field cannot be used; empty when it can.
func refusal(t reflect.Type, f reflect.StructField) string {
	if f.Type == refusedType {
		return f.Tag.Get("why")
	}
	if t == reflect.TypeFor[genai.GenerateContentConfig]() {
		return elsewhere[f.Name]
	}
	return ""
}
