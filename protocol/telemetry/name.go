package telemetry

import "go.opentelemetry.io/otel/attribute"

// Scope is the instrumentation scope of all spans.
const Scope = "github.com/toolfabric/toolfabric"

// Destination is the messaging destination template of calls: one fixed word, so that span names stay few.
const Destination = "toolfabric.call.{tool}"

// Names of spans. Those that end in a space are followed by the name of an agent, a tool or a model.
const (
	SpanInvokeAgent = "invoke_agent "
	SpanGenerate    = "generate_content "
	SpanExecuteTool = "execute_tool "
	SpanSend        = "send " + Destination
	SpanProcess     = "process " + Destination
)

// Attributes of the conventions for generative AI.
const (
	OperationName   = attribute.Key("gen_ai.operation.name")
	ConversationID  = attribute.Key("gen_ai.conversation.id") // the session
	AgentName       = attribute.Key("gen_ai.agent.name")
	ToolName        = attribute.Key("gen_ai.tool.name")
	ToolCallID      = attribute.Key("gen_ai.tool.call.id")
	ToolType        = attribute.Key("gen_ai.tool.type")
	ToolArguments   = attribute.Key("gen_ai.tool.call.arguments") // only with ContentCapture
	ToolResult      = attribute.Key("gen_ai.tool.call.result")    // only with ContentCapture
	ProviderName    = attribute.Key("gen_ai.provider.name")
	RequestModel    = attribute.Key("gen_ai.request.model")
	ResponseModel   = attribute.Key("gen_ai.response.model")
	ResponseID      = attribute.Key("gen_ai.response.id")
	FinishReasons   = attribute.Key("gen_ai.response.finish_reasons")
	InputTokens     = attribute.Key("gen_ai.usage.input_tokens")
	OutputTokens    = attribute.Key("gen_ai.usage.output_tokens")
	CachedTokens    = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	ReasoningTokens = attribute.Key("gen_ai.usage.reasoning.output_tokens")
)

// Values of OperationName and ToolType.
const (
	OperationInvokeAgent = "invoke_agent"
	OperationGenerate    = "generate_content"
	OperationExecuteTool = "execute_tool"
	ToolTypeFunction     = "function"
)

// Attributes of the messaging conventions, and of errors.
const (
	MessagingSystem        = attribute.Key("messaging.system") // "nats"
	MessagingTemplate      = attribute.Key("messaging.destination.template")
	MessagingDestination   = attribute.Key("messaging.destination.name")
	MessagingOperation     = attribute.Key("messaging.operation.name") // "send" or "process"
	MessagingOperationType = attribute.Key("messaging.operation.type")
	MessagingMessageID     = attribute.Key("messaging.message.id") // the call
	MessagingGroup         = attribute.Key("messaging.consumer.group.name")
	ErrorType              = attribute.Key("error.type") // a code of the closed table, or ErrorTypeTool
)

// ErrorTypeTool is the error.type of a failure that the tool itself reported.
const ErrorTypeTool = "tool_error"

// Attributes of our own.
const (
	Attempt     = attribute.Key("toolfabric.attempt") // the delivery, from 1
	Round       = attribute.Key("toolfabric.round")
	Effect      = attribute.Key("toolfabric.effect")
	Outcome     = attribute.Key("toolfabric.outcome")
	Worker      = attribute.Key("toolfabric.worker")
	Settled     = attribute.Key("toolfabric.settled") // how a worker let go of a delivery
	Role        = attribute.Key("toolfabric.role")    // "dispatch" on the coordinator's execute_tool span, so that it is not counted twice
	TurnOutcome = attribute.Key("toolfabric.turn.outcome")
	LinkKind    = attribute.Key("toolfabric.link") // why a span links to another
)
