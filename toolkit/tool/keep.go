package tool

import "github.com/toolfabric/toolfabric/toolkit/agent"

// Keeper is a Context that keeps bytes out of a result. See agent.Keeper.
type Keeper = agent.Keeper

// MaxKept is how many bytes one Keep takes.
const MaxKept = 32 << 20
