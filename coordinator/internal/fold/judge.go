package fold

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// judge says why an input is refused; nil accepts it. It reads nothing but the state and the input.
func judge(s *State, in protocol.FoldedInput) *protocol.Problem {
	if p := s.Closed(); p != nil {
		return p
	}
	refuse := func(code protocol.Code, text string) *protocol.Problem {
		return &protocol.Problem{Code: code, Message: text}
	}
	for k := range in.StateDelta {
		if strings.HasPrefix(k, "app:") || strings.HasPrefix(k, "user:") {
			return refuse(protocol.CodeUnsupported, "state key "+k+": only keys of the session and temp: keys can be set")
		}
	}
	if len(in.StateDelta) > 0 && size(in.StateDelta)+size(s.Values) > MaxValues {
		return refuse(protocol.CodeTooLarge, "the session's state would be larger than 256 KiB")
	}
	if n := weight(in); n > MaxInputs {
		return refuse(protocol.CodeTooLarge, fmt.Sprintf("the input takes %d bytes of the session's log, more than %d: pass large data by reference", n, MaxInputs))
	}
	switch in.Kind {
	case protocol.InputMessage:
		if s.App == protocol.CallsApp {
			return refuse(protocol.CodeUnsupported, "the app calls takes inputs of kind call only")
		}
	case protocol.InputCall:
		if s.App != protocol.CallsApp {
			return refuse(protocol.CodeUnsupported, "inputs of kind call go to the app calls")
		}
		if s.Seq > 0 {
			return refuse(protocol.CodeUnsupported, "a session of the app calls makes one call; use a new session for each")
		}
	case protocol.InputDelete:
	case protocol.InputCancel:
		return judgeCancel(s, in.Target)
	default:
		return refuse(protocol.CodeUnsupportedVersion, "unknown kind of input "+string(in.Kind))
	}
	return nil
}

func judgeCancel(s *State, target string) *protocol.Problem {
	if target == "" && s.Run == nil {
		return &protocol.Problem{Code: protocol.CodeNotFound, Message: "nothing runs in this session: there is nothing to cancel"}
	}
	if target == "" || s.isOpen(target) || slices.ContainsFunc(s.Later, func(l Later) bool { return l.Call.ID == target }) {
		return nil
	}
	return &protocol.Problem{Code: protocol.CodeNotFound, Message: "no call " + target + " is open in this session: it has ended, or is another session's"}
}

// weight is what an input takes in its event, in bytes. The arguments of a call stand in the input and in the turn.
func weight(in protocol.FoldedInput) int {
	n := len(in.Content) + size(in.StateDelta)
	if in.Call != nil {
		n += 2 * len(in.Call.Args)
	}
	if d := in.Decision; d != nil {
		n += len(d.Payload) + len(d.Args)
	}
	return n
}

func size(values map[string]json.RawMessage) int {
	n := 0
	for k, v := range values {
		n += len(k) + len(v)
	}
	return n
}
