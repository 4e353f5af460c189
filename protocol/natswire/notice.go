package natswire

import (
	"errors"
	"regexp"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// NoticeKind says what happened to a connection.
type NoticeKind string

// What can happen to a connection.
const (
	Disconnected NoticeKind = "disconnected" // Err is the reason, nil for none known
	Reconnected  NoticeKind = "reconnected"  // URL is where to
	Closed       NoticeKind = "closed"       // for good, and not by Close: the credentials were revoked, for instance; Err is an *protocol.Error
	Denied       NoticeKind = "denied"       // the server refused a subject: Err is a *protocol.Error of code forbidden
	Trouble      NoticeKind = "trouble"      // any other complaint of the client or the server, in Err
)

// Notice is one event in the life of a connection.
type Notice struct {
	Kind NoticeKind
	URL  string
	Err  error
}

// violation is a permission the server says is missing.
type violation struct {
	subject   string
	subscribe bool // else publish
	reply     bool // the subject is the reply of a publish
}

var violationText = regexp.MustCompile(`(?i)permissions violation for (publish|subscription)( with reply of| to) "([^"]+)"`)

// parseViolation reads the only form in which the server tells what it refused: text.
func parseViolation(err error) (violation, bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return violation{}, false
	}
	m := violationText.FindStringSubmatch(err.Error())
	if m == nil {
		return violation{}, false
	}
	return violation{subject: m[3], subscribe: m[1][0]|0x20 == 's', reply: m[2] != " to"}, true
}

func errForbidden(v violation, err error) *protocol.Error {
	what := "publish on"
	switch {
	case v.subscribe:
		what = "subscribe to"
	case v.reply:
		what = "ask for replies on"
	}
	return protocol.Wrap(err, protocol.CodeForbidden, "these credentials may not %s %s; grant it or use others", what, v.subject)
}
