package natswire

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// Error numbers of JetStream that mean something to us, from the server's errors.json.
const (
	jsMaxConsumers      = 10026
	jsConsumerNotFound  = 10014
	jsInsufficient      = 10023
	jsNotEnabled        = 10076
	jsNotEnabledAccount = 10039
	jsUnavailable       = 10008
	jsNoMessage         = 10037
	jsDeleteFailed      = 10057
	jsMsgNotFoundSeq    = 10043
	jsStorage           = 10047
	jsStreamConfig      = 10052
	jsNameInUse         = 10058
	jsStreamNotFound    = 10059
	jsWrongLast         = 10071
	jsStoreFailed       = 10077
	jsWrongLastPending  = 10164 // a racing append is in process: only replicated streams
)

// apiError is an error of the JetStream API or of a publish ack.
type apiError struct {
	Status      int    `json:"code"`
	Number      int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return e.Description }

// refused turns a JetStream error into ours. what names the operation and the thing.
func (e *apiError) refused(what string) *protocol.Error {
	fault := func(code protocol.Code, next string) *protocol.Error {
		return protocol.Wrap(e, code, "%s: %s", what, next)
	}
	switch e.Number {
	case jsNoMessage, jsConsumerNotFound:
		return fault(protocol.CodeNotFound, "there is none")
	case jsStreamNotFound:
		return fault(protocol.CodeNotFound, "the stream does not exist; provision the namespace")
	case jsInsufficient, jsStorage, jsStoreFailed:
		return fault(protocol.CodeStorageFull, "the stream or the account is at its limit; retry later or raise it")
	case jsMaxConsumers:
		return fault(protocol.CodeStorageFull, "the stream or the account holds as many consumers as it may; raise the limit")
	case jsNotEnabled, jsNotEnabledAccount:
		return errNoJetStream(e)
	case jsWrongLast, jsWrongLastPending:
		return fault(protocol.CodeFenced, "somebody else was first")
	case jsUnavailable:
		return fault(protocol.CodeUnreachable, "JetStream is not available now; retry later")
	}
	if e.Status == 503 || e.Status == 504 {
		return fault(protocol.CodeUnreachable, "the broker cannot do it now ("+e.Description+"); retry later")
	}
	return fault(protocol.CodeInternal, "the broker refused ("+e.Description+")")
}

// perSubject tells which of the two meanings of 10077 an error has.
func (e *apiError) perSubject() bool {
	return e.Number == jsStoreFailed && strings.Contains(e.Description, "messages per subject")
}

func errNoJetStream(err error) *protocol.Error {
	return protocol.Wrap(err, protocol.CodeUnsupported, "JetStream is not enabled for this account; start nats-server with -js or use another account")
}

// sendError turns an error of the client library's publish into ours.
func sendError(err error, m *nats.Msg) *protocol.Error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return protocol.Wrap(err, protocol.CodeTooLarge, "%d bytes for %s are more than the server takes", len(m.Data), m.Subject)
	case errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrBadHeaderMsg):
		return protocol.Wrap(err, protocol.CodeInternal, "publish on %q", m.Subject)
	}
	if errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining) {
		return protocol.Wrap(err, protocol.CodeUnreachable, "no connection to NATS; nothing was sent on %s", m.Subject)
	}
	return protocol.Wrap(err, protocol.CodeUnreachable, "the connection to NATS broke while %s was sent; it may have had its effect", m.Subject)
}

// noResponders reports whether m is the server's word that nobody listened.
func noResponders(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get("Status") == "503"
}

func asAPIError(err error) (*apiError, bool) { return errors.AsType[*apiError](err) }
