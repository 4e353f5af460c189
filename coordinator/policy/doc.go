// Package policy is the operator's word on calls: rules that have people asked before a call runs. A rule is a name and an
// expression in CEL over the call; where it holds, it adds a confirmation or makes one stricter. No rule can take a
// confirmation away, and none can let a call run that would be refused: what tools declare about themselves is a floor.
//
// Rules are asked about calls that something runs for. Handing over to another agent (transfer_to_agent) and exit_loop are
// none: they change who speaks next in the session, and nothing else.
//
// Policy is evaluated once for a call, when its turn is judged, and what came of it is recorded in the turn. A change of
// the rules changes nothing about calls that are in a log.
package policy
