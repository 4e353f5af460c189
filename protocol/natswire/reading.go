package natswire

import "strings"

// ParseTool splits a key of the bucket of tools.
func (n Names) ParseTool(subject string) (tool, digest string, ok bool) {
	key, ok := strings.CutPrefix(subject, "$KV."+n.Tools()+".")
	if !ok {
		return "", "", false
	}
	tool, digest, ok = strings.Cut(key, ".")
	return tool, digest, ok && tool != "" && digest != "" && !strings.Contains(digest, ".")
}

// ResultFilter matches the mailboxes of a session.
func (n Names) ResultFilter(session string) string {
	return join(n.ns, "result", "*", session, "*", "*")
}

// WakeSessionFilter matches the waking mailboxes of a session.
func (n Names) WakeSessionFilter(app, session string) string {
	return join(n.ns, "wake", app, "*", session, "*", "*")
}

// ParseToken splits a token subject.
func (n Names) ParseToken(subject string) (session, epoch string, ok bool) {
	t := n.split(subject, "token", 2)
	if t == nil {
		return "", "", false
	}
	return t[0], t[1], true
}

const (
	headerKVOperation = "KV-Operation"
	kvDelete          = "DEL"
	kvPurge           = "PURGE"
)

// KeyDeleted reports whether the message that stands at a bucket's key says that the key has no value.
func KeyDeleted(h Header) bool {
	op := h.Get(headerKVOperation)
	return op == kvDelete || op == kvPurge
}

// DeleteKey is the message that deletes a bucket's key. Whoever watches the bucket sees it.
func DeleteKey(subject string) Msg {
	return Msg{Subject: subject, Header: Header{headerKVOperation: kvDelete}}
}
