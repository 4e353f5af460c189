// Package runner runs an agent inside a Go program, under the names and with the signatures of Google's ADK: a program that
// was written for ADK moves by a change of its imports. The agent's tools become pools, a coordinator drives its sessions
// and a worker serves its tools, all in the program's own process and on messages, as they do anywhere else.
//
// What a runner runs on is its Fabric. Without one, and without environment, that is a server in the memory of the process,
// one for each session.Service: sessions end with the process, as those of ADK's in-memory service do. With TOOLFABRIC_DATA
// set to a directory everything is on disk: a program that is killed in the middle of a run and started again goes on with
// it, and the commands of toolfabric see its sessions (toolfabric --data DIR approvals ls). With TOOLFABRIC_NATS set it
// all lives on a NATS server, where workers in other places can serve the agent's tools too.
//
// What differs from ADK, because a run belongs to the fabric and not to the loop that ranges over it:
//
//   - Leaving the loop early does not end the run. The end of its context does: the run is then cancelled.
//   - A confirmation or a result counts once. A second one is an error, and so is one that nothing waits for; both change
//     nothing. While calls wait, the model is not asked: a message that is sent meanwhile is taken up afterwards.
//   - In streaming mode the text of an answer may begin before the event with the responses that it is based on, which is
//     recorded together with the answer.
//   - A session of a user is one of an agent, and events cannot be put into it by hand.
package runner
