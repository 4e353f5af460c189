package agent

import (
	"context"
	"log/slog"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/artifact"
	"github.com/toolfabric/toolfabric/toolkit/memory"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// ReadonlyContext is what instruction providers, predicates and toolsets see of a run.
type ReadonlyContext interface {
	context.Context
	UserContent() *genai.Content // the message that started the run; nil when unknown here
	InvocationID() string        // the run
	AgentName() string
	ReadonlyState() session.ReadonlyState
	UserID() string    // as whoever sent the message named them
	AppName() string   // the agent that coordinators serve by name; a sub-agent's AgentName is its own
	SessionID() string // as whoever began it named it
	Branch() string
}

// Context is what a tool and a callback see of a run. It ends when the call's deadline passes, when somebody cancels the
// call and when a drain runs out of grace; context.Cause tells which. It is used by one call only.
type Context interface {
	ReadonlyContext
	State() session.State
	Artifacts() Artifacts
	// FunctionCallID is the call's id in the fabric. It is also its idempotency key: the same on every attempt.
	FunctionCallID() string
	Actions() *session.EventActions
	SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error)
	// ToolConfirmation is a person's word on this call; nil when none was asked. A tool that asked by itself gets a
	// refusal too, with Confirmed false, and must obey it; every other refused call never reaches its tool. Payload is as
	// encoding/json decodes it, with json.Number where float64 would lose a digit.
	ToolConfirmation() *toolconfirmation.ToolConfirmation
	// RequestConfirmation asks a person about this call. The tool returns after it; the call then waits, holding nothing,
	// and runs again from its beginning, perhaps on another worker, with the answer in ToolConfirmation. What it returns
	// until then is shown while the call waits if it is an object; an error asks all the same. A tool may ask again each
	// time it runs. Of several questions in one run the last counts, and a tool that panics or is cancelled asks nothing.
	//
	// Nothing in memory survives. What a stage must know of the one before it travels in the payload, which the person
	// sees and sends back as they please, or in the session's state: what was set in this run is merged when the question
	// is, and the next stage reads it. Other actions belong to the answer that ends the call and are left out.
	//
	// hint is at most 4 KiB, payload is JSON-encodable and at most 64 KiB. The error says what is wrong with them; then
	// nothing is asked.
	RequestConfirmation(hint string, payload any) error
	// ResultHandle is text, to be stored, that names where the later result of a long-running call belongs. Whoever
	// finishes the work, in this process or another one, passes it to worker.Complete, worker.Fail or worker.Interim.
	ResultHandle() string

	// Attempt is the delivery this run belongs to, from 1.
	Attempt() int
	// Progress tells watchers how far the call is; percent 0 is unknown. It never blocks and may be dropped.
	Progress(percent float64, message string)
	// Logger writes records with the ids of the call.
	Logger() *slog.Logger
}

// ToolContext and CallbackContext are the names that earlier versions of ADK used.
type (
	ToolContext     = Context
	CallbackContext = Context
)

// Artifacts are the session's files.
type Artifacts interface {
	Save(ctx context.Context, name string, data *genai.Part) (*artifact.SaveResponse, error)
	List(ctx context.Context) (*artifact.ListResponse, error)
	Load(ctx context.Context, name string) (*artifact.LoadResponse, error)
	LoadVersion(ctx context.Context, name string, version int) (*artifact.LoadResponse, error)
}
