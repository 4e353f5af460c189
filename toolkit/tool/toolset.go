package tool

import "github.com/toolfabric/toolfabric/toolkit/agent"

// Toolset is a set of tools that is listed anew for each run. One that also is an io.Closer is closed by whoever serves its
// tools, after the last call, once for each layer around it; one that also is a RequestProcessor shapes model requests after
// all tools did. What this package makes of a set (FilterToolset, Prefix, Rename, WithConfirmation, WithSettings) has all of
// these abilities and passes them on.
type Toolset interface {
	Name() string
	Tools(ctx agent.ReadonlyContext) ([]Tool, error)
}

// Changing is a Toolset that tells when its list is another one. Changed delivers once per change or more often, and may
// merge changes; whoever serves the tools lists them again then. It is read by one goroutine. A nil channel is that of a set
// that does not change.
type Changing interface {
	Toolset
	Changed() <-chan struct{}
}
