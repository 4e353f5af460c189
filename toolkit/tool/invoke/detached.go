package invoke

import (
	"context"

	"github.com/toolfabric/toolfabric/protocol"
)

// Detached is what a tool sees of a call, without an execution around it: for tests of tools. It is an agent.Context.
type Detached struct{ *toolContext }

// NewDetached is what tool sees of c when it runs.
func NewDetached(ctx context.Context, c Call, tool string) Detached {
	return Detached{newContext(ctx, &c, tool)}
}

// Asked is what the tool asked a person last; nil for nothing.
func (d Detached) Asked() *protocol.Ask { return d.asked() }
