package natswire

// CallResults matches the mailboxes of all rounds of a call, whatever its tool and session.
func (n Names) CallResults(call string) string { return join(n.ns, "result", "*", "*", call, "*") }

// CallWakes matches the waking mailboxes of all rounds of a call, whatever its app, tool and session.
func (n Names) CallWakes(call string) string { return join(n.ns, "wake", "*", "*", "*", call, "*") }

// ParseDeadLetter splits the subject of a dead-letter record.
func (n Names) ParseDeadLetter(subject string) (kind, id string, ok bool) {
	t := n.split(subject, "dlq", 2)
	if t == nil {
		return "", "", false
	}
	return t[0], t[1], true
}
