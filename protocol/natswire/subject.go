package natswire

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// Names spells every subject, stream and bucket of one namespace. The zero value is not usable: see NewNames.
type Names struct{ ns string }

// DefaultNamespace is used when none is configured.
const DefaultNamespace = "tf"

// NewNames checks a namespace: one token, 1 to 16 of a-z and 0-9. Two namespaces on one account see nothing of each other.
func NewNames(namespace string) (Names, error) {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	for _, c := range namespace {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') || len(namespace) > 16 {
			return Names{}, protocol.Errorf(protocol.CodeUsage, "namespace %q: 1 to 16 of a-z and 0-9", namespace)
		}
	}
	return Names{ns: namespace}, nil
}

// Streams and buckets. The namespace "tf" has bare names, another prefixes them: dev_INPUT.
func (n Names) stream(name string) string {
	if n.ns == DefaultNamespace {
		return name
	}
	return n.ns + "_" + name
}

// Namespace is the first token of every subject.
func (n Names) Namespace() string { return n.ns }

// Input is the stream of what is said to sessions.
func (n Names) Input() string { return n.stream("INPUT") }

// Log is the stream of the sessions' logs.
func (n Names) Log() string { return n.stream("LOG") }

// Calls is the work queue of tool calls.
func (n Names) Calls() string { return n.stream("CALLS") }

// Results is the stream of result mailboxes and claims.
func (n Names) Results() string { return n.stream("RESULTS") }

// Wake is the stream of the mailboxes whose answers wake a parked session.
func (n Names) Wake() string { return n.stream("WAKE") }

// Approval is the stream of decisions on confirmations.
func (n Names) Approval() string { return n.stream("APPROVAL") }

// Park is the KV bucket that lists what waits.
func (n Names) Park() string { return n.stream("PARK") }

// Timers is the stream of guards and deadlines.
func (n Names) Timers() string { return n.stream("TIMERS") }

// Registry is the stream of worker registrations.
func (n Names) Registry() string { return n.stream("REG") }

// DeadLetters is the stream of what was given up.
func (n Names) DeadLetters() string { return n.stream("DLQ") }

// Tools is the KV bucket of accepted declarations.
func (n Names) Tools() string { return n.stream("TOOLS") }

// Objects is the object store of large bodies.
func (n Names) Objects() string { return n.stream("OBJ") }

// Skills is the object store of skills.
func (n Names) Skills() string { return n.stream("SKILLS") }

// InputSubject is where client says something to a session.
func (n Names) InputSubject(app, client, session string) string {
	return join(n.ns, "input", app, client, session)
}

// InputFilter matches all inputs of an app.
func (n Names) InputFilter(app string) string { return join(n.ns, "input", app, "*", "*") }

// LogSubject is a session's log.
func (n Names) LogSubject(app, session string) string { return join(n.ns, "log", app, session) }

// LogFilter matches the logs of an app.
func (n Names) LogFilter(app string) string { return join(n.ns, "log", app, "*") }

// LiveSubject is where a session's new events are republished.
func (n Names) LiveSubject(app, session string) string { return join(n.ns, "live", app, session) }

// CallSubject is the queue of a tool.
func (n Names) CallSubject(tool string) string { return join(n.ns, "call", tool) }

// ResultSubject is the mailbox of one round of a call.
func (n Names) ResultSubject(tool, session, call string, round int) string {
	return join(n.ns, "result", tool, session, call, strconv.Itoa(round))
}

// WakeSubject is the mailbox of one round of a call that may park.
func (n Names) WakeSubject(app, tool, session, call string, round int) string {
	return join(n.ns, "wake", app, tool, session, call, strconv.Itoa(round))
}

// WakeFilter matches the waking mailboxes of an app.
func (n Names) WakeFilter(app string) string { return join(n.ns, "wake", app, "*", "*", "*", "*") }

// ApprovalSubject is where approver decides a confirmation; "*" stands for all.
func (n Names) ApprovalSubject(app, session, confirmation, approver string) string {
	return join(n.ns, "approval", app, session, confirmation, approver)
}

// ApprovalFilter matches the decisions of an app.
func (n Names) ApprovalFilter(app string) string { return n.ApprovalSubject(app, "*", "*", "*") }

// ReceiptSubject is where approvers are told what became of their decisions; session and confirmation may be "*".
func (n Names) ReceiptSubject(app, session, confirmation string) string {
	return join(n.ns, "receipt", app, session, confirmation)
}

// ParkSubject is the key of a waiting call in the bucket of what waits; "*" stands for all.
func (n Names) ParkSubject(app, session, call string) string {
	return "$KV." + n.Park() + "." + app + "." + session + "." + call
}

// ParkStream is the stream behind the bucket of what waits.
func (n Names) ParkStream() string { return "KV_" + n.Park() }

// DoneSubject is where a session's stored results are republished. It has no wildcard: a subscription that comes and goes
// with each run costs the server its cache of routes otherwise.
func (n Names) DoneSubject(session string) string { return join(n.ns, "done", session) }

// ClaimSubject is where the right to start a call's effect is decided.
func (n Names) ClaimSubject(tool, call string, round int) string {
	return join(n.ns, "claim", tool, call, strconv.Itoa(round))
}

// TimerSubject holds one timer of a session.
func (n Names) TimerSubject(app, session, id string) string {
	return join(n.ns, "timer", app, session, id)
}

// DueSubject is where a session's timers fire.
func (n Names) DueSubject(app, session string) string { return join(n.ns, "due", app, session) }

// DueFilter matches the fired timers of an app.
func (n Names) DueFilter(app string) string { return join(n.ns, "due", app, "*") }

// RegistrationSubject is a worker's beat for one tool; "*" stands for all.
func (n Names) RegistrationSubject(tool, worker string) string {
	return join(n.ns, "reg", tool, worker)
}

// DeadLetterSubject is where a dead-letter record of a stream is stored.
func (n Names) DeadLetterSubject(kind, id string) string { return join(n.ns, "dlq", kind, id) }

// ToolSubject is the key of a declaration in the bucket of tools; "*" stands for all.
func (n Names) ToolSubject(tool, digest string) string {
	return "$KV." + n.Tools() + "." + tool + "." + digest
}

// OwnSubject is where a coordinator answers for its sessions.
func (n Names) OwnSubject(coordinator string) string { return join(n.ns, "own", coordinator) }

// CancelSubject asks whoever runs a call to stop it; call may be "*".
func (n Names) CancelSubject(tool, call string) string { return join(n.ns, "cancel", tool, call) }

// ProgressSubject carries a running call's progress; tool and call may be "*".
func (n Names) ProgressSubject(tool, session, call string) string {
	return join(n.ns, "progress", tool, session, call)
}

// TokenSubject carries the text of a model that is answering; epoch may be "*".
func (n Names) TokenSubject(session, epoch string) string { return join(n.ns, "token", session, epoch) }

// ParseInput splits an input subject. It returns false for any other subject.
func (n Names) ParseInput(subject string) (app, client, session string, ok bool) {
	t := n.split(subject, "input", 3)
	if t == nil {
		return "", "", "", false
	}
	return t[0], t[1], t[2], true
}

// ParseLog splits a log subject.
func (n Names) ParseLog(subject string) (app, session string, ok bool) {
	t := n.split(subject, "log", 2)
	if t == nil {
		return "", "", false
	}
	return t[0], t[1], true
}

// ParseDue splits the subject of a fired timer.
func (n Names) ParseDue(subject string) (app, session string, ok bool) {
	t := n.split(subject, "due", 2)
	if t == nil {
		return "", "", false
	}
	return t[0], t[1], true
}

// ParseResult splits the subject of a mailbox.
func (n Names) ParseResult(subject string) (tool, session, call string, round int, ok bool) {
	t := n.split(subject, "result", 4)
	if t == nil {
		return "", "", "", 0, false
	}
	round, ok = parseRound(t[3])
	return t[0], t[1], t[2], round, ok
}

// ParseWake splits the subject of a waking mailbox.
func (n Names) ParseWake(subject string) (app, tool, session, call string, round int, ok bool) {
	t := n.split(subject, "wake", 5)
	if t == nil {
		return "", "", "", "", 0, false
	}
	round, ok = parseRound(t[4])
	return t[0], t[1], t[2], t[3], round, ok
}

// ParseApproval splits the subject of a decision.
func (n Names) ParseApproval(subject string) (app, session, confirmation, approver string, ok bool) {
	t := n.split(subject, "approval", 4)
	if t == nil {
		return "", "", "", "", false
	}
	return t[0], t[1], t[2], t[3], true
}

// ParsePark splits the key of a waiting call.
func (n Names) ParsePark(subject string) (app, session, call string, ok bool) {
	rest, ok := strings.CutPrefix(subject, "$KV."+n.Park()+".")
	t := strings.Split(rest, ".")
	if !ok || len(t) != 3 {
		return "", "", "", false
	}
	return t[0], t[1], t[2], true
}

// ParseDone tells of which call a republished result is, by the mailbox that the broker says it is from.
func (n Names) ParseDone(m Msg) (session, tool, call string, round int, ok bool) {
	mailbox := m.Header["Nats-Subject"]
	if tool, session, call, round, ok = n.ParseResult(mailbox); !ok {
		_, tool, session, call, round, ok = n.ParseWake(mailbox)
	}
	return session, tool, call, round, ok && strings.HasSuffix(m.Subject, "."+session)
}

// ParseProgress splits a progress subject.
func (n Names) ParseProgress(subject string) (tool, session, call string, ok bool) {
	t := n.split(subject, "progress", 3)
	if t == nil {
		return "", "", "", false
	}
	return t[0], t[1], t[2], true
}

// ParseRegistration splits the subject of a worker's beat.
func (n Names) ParseRegistration(subject string) (tool, worker string, ok bool) {
	t := n.split(subject, "reg", 2)
	if t == nil {
		return "", "", false
	}
	return t[0], t[1], true
}

// parseRound reads a round as it is written: other spellings of a number would be other subjects.
func parseRound(token string) (int, bool) {
	round, err := strconv.Atoi(token)
	return round, err == nil && round >= 0 && strconv.Itoa(round) == token
}

func (n Names) split(subject, kind string, want int) []string {
	t := strings.Split(subject, ".")
	if len(t) != want+2 || t[0] != n.ns || t[1] != kind || slices.Contains(t, "") {
		return nil
	}
	return t[2:]
}

func join(tokens ...string) string { return strings.Join(tokens, ".") }

// MaxDeliveriesFilter matches the broker's advisories about calls that were delivered too often.
func (n Names) MaxDeliveriesFilter() string {
	return join("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES", n.Calls(), "*")
}

// isMailbox reports whether a subject takes one message for good: a result or a claim.
func (n Names) isMailbox(subject string) bool {
	rest, ok := strings.CutPrefix(subject, n.ns+".")
	return ok && (strings.HasPrefix(rest, "result.") || strings.HasPrefix(rest, "claim.") || strings.HasPrefix(rest, "wake."))
}

// ToolsStream is the stream behind the bucket of tools.
func (n Names) ToolsStream() string { return "KV_" + n.Tools() }
