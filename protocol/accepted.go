package protocol

// Accepted is a declaration that a coordinator has taken, with its body, as the bucket of tools keeps it: a tool exists
// while one of its declarations is there, also when nobody serves it. Of several digests the newest is offered to models.
type Accepted struct {
	V           int         `json:"v"`
	Declaration Declaration `json:"declaration"`
	AcceptedAt  int64       `json:"accepted_at"` // Unix milliseconds
	Worker      string      `json:"worker"`      // whose registration it was
}

// DecodeAccepted reads an accepted declaration. It returns an *Error of code bad_message, unsupported_version, bad_name
// or bad_declaration.
func DecodeAccepted(data []byte) (Accepted, error) {
	var a Accepted
	if err := Decode(data, &a, MessageLimits); err != nil {
		return Accepted{}, err
	}
	if err := CheckVersion(a.V); err != nil {
		return a, err
	}
	return a, a.Declaration.Check()
}
