package coordinator

import "time"

// Events is what a coordinator tells of its work to those who measure it. Nil functions are not called. They are called
// by several sessions at once and must not block.
type Events struct {
	// RequestBuilt is told how long it took to make a model request: reading the log as far as the model has not been
	// shown it by this process, and building the request. It grows with the conversation, unlike the rest of a turn.
	RequestBuilt func(app, session string, took time.Duration)
}
