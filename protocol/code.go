package protocol

// Code says what went wrong in one word that programs may switch on. The table is closed: numbers never change meaning
// and text is frozen, a new failure gets a new line. Codes are the fabric's own; what a tool reports about its work is
// an answer, not a code.
type Code string

// Who has to act on a code.
const (
	ActorCaller   = "caller"   // whoever sent the input, wrote the declaration or configured the agent
	ActorFabric   = "fabric"   // nobody: the fabric retries or has already settled it
	ActorOperator = "operator" // whoever runs the fabric
)

// The closed table.
const (
	CodeBadMessage         Code = "bad_message"          // not JSON, duplicate key, wrong type, too deep
	CodeTooLarge           Code = "too_large"            // over a size limit that the message names
	CodeBadName            Code = "bad_name"             // not a legal tool, agent or app name
	CodeBadID              Code = "bad_id"               // not one NATS token
	CodeUnsupportedVersion Code = "unsupported_version"  // wire version unknown to this build
	CodeUnsupported        Code = "unsupported"          // understood, but this build cannot do it
	CodeBadDeclaration     Code = "bad_declaration"      // a tool's declaration or schema is refused
	CodeSchemaViolation    Code = "schema_violation"     // arguments do not fit the declared schema
	CodeUnknownTool        Code = "unknown_tool"         // no tool of that name is offered
	CodeUnknownApp         Code = "unknown_app"          // no coordinator has ever served that agent
	CodeUnknownSession     Code = "unknown_session"      // no such session, or it was deleted
	CodeSessionClosed      Code = "session_closed"       // deleted or quarantined: takes no more input
	CodeNoWorker           Code = "no_worker"            // nobody took the call in time: it was not executed
	CodeExpired            Code = "expired"              // the deadline passed; it may have run unless the text says otherwise
	CodeCancelled          Code = "cancelled"            // somebody asked for it
	CodeOutcomeUnknown     Code = "outcome_unknown"      // the effect may have happened; it will not be tried again
	CodePoison             Code = "poison"               // the worker died on it each time it was delivered
	CodeDigestMismatch     Code = "digest_mismatch"      // the worker serves another version of the tool
	CodeToolPanic          Code = "tool_panic"           // the tool's code panicked
	CodeLimit              Code = "limit_exceeded"       // a cap of the run was reached
	CodeModelFailed        Code = "model_failed"         // the model could not be asked
	CodeModelRefused       Code = "model_refused"        // the provider refused the request or blocked the answer
	CodeAnswered           Code = "already_answered"     // the first result was stored before
	CodeFenced             Code = "fenced"               // somebody else appended to the session first
	CodeNotFound           Code = "not_found"            // no such message, key or object
	CodeUnreachable        Code = "bus_unreachable"      // no connection to NATS, or no answer in time
	CodeForbidden          Code = "forbidden"            // credentials accepted, permission missing
	CodeAuth               Code = "auth_failed"          // credentials refused
	CodeServerTooOld       Code = "server_too_old"       // nats-server lacks what we need
	CodeStorageFull        Code = "storage_full"         // a stream or account is at its limit
	CodeConsumerGone       Code = "consumer_gone"        // the durable was deleted
	CodeDenied             Code = "denied"               // people said no: the call was not executed
	CodeDecided            Code = "already_decided"      // the confirmation was decided before
	CodeConflict           Code = "conflicting_decision" // the same approver said something else before
	CodeUnknownConfirm     Code = "unknown_confirmation" // nothing waits under that id in this session
	CodeUsage              Code = "usage"                // wrong flags or configuration
	CodeInternal           Code = "internal"             // a bug, or a state we did not foresee
)

var codes = map[Code]struct {
	number int
	actor  string
}{
	CodeBadMessage: {1, ActorCaller}, CodeTooLarge: {2, ActorCaller}, CodeBadName: {3, ActorCaller}, CodeBadID: {4, ActorCaller},
	CodeUnsupportedVersion: {5, ActorOperator}, CodeUnsupported: {6, ActorCaller}, CodeBadDeclaration: {7, ActorCaller},
	CodeSchemaViolation: {8, ActorCaller}, CodeUnknownTool: {9, ActorCaller}, CodeUnknownApp: {10, ActorCaller},
	CodeUnknownSession: {11, ActorCaller}, CodeSessionClosed: {12, ActorCaller}, CodeNoWorker: {13, ActorOperator},
	CodeExpired: {14, ActorFabric}, CodeCancelled: {15, ActorCaller}, CodeOutcomeUnknown: {16, ActorOperator},
	CodePoison: {17, ActorOperator}, CodeDigestMismatch: {18, ActorOperator}, CodeToolPanic: {19, ActorCaller},
	CodeLimit: {20, ActorCaller}, CodeModelFailed: {21, ActorOperator}, CodeModelRefused: {22, ActorCaller},
	CodeAnswered: {23, ActorFabric}, CodeFenced: {24, ActorFabric}, CodeNotFound: {25, ActorCaller},
	CodeUnreachable: {26, ActorOperator}, CodeForbidden: {27, ActorOperator}, CodeAuth: {28, ActorOperator},
	CodeServerTooOld: {29, ActorOperator}, CodeStorageFull: {30, ActorOperator}, CodeConsumerGone: {31, ActorFabric},
	CodeUsage: {32, ActorCaller}, CodeInternal: {33, ActorOperator},
	CodeDenied: {34, ActorCaller}, CodeDecided: {35, ActorCaller}, CodeConflict: {36, ActorCaller}, CodeUnknownConfirm: {37, ActorCaller},
}

// Number is the frozen number of the code; 0 for a code that is not in the table.
func (c Code) Number() int { return codes[c].number }

// Actor is who has to act; empty for a code that is not in the table.
func (c Code) Actor() string { return codes[c].actor }
