package agent

import "google.golang.org/genai"

// BeforeAgentCallback is asked when a run enters the agent, before its model is. A content is the agent's answer: the run
// ends with it, and neither model nor after-callbacks are asked. An error ends the run as failed.
//
// Callbacks are code at the live end of a session's log. What came of one is in the log and counts; it runs once more, here
// or in another coordinator, when this one dies before that. It must be safe to use concurrently, and to repeat.
type BeforeAgentCallback func(Context) (*genai.Content, error)

// AfterAgentCallback is asked when the agent has given its last answer. A content is said behind that answer. An error ends
// the run as failed.
type AfterAgentCallback func(Context) (*genai.Content, error)
