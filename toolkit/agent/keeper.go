package agent

import "github.com/toolfabric/toolfabric/protocol"

// Keeper is a Context that can keep what does not belong into a result: an image, or a text too large for a model. A Context
// that is none, or whose Keep fails, leaves the tool to say what it left out.
type Keeper interface {
	Context
	// Keep stores data in the fabric's object store before the result that names it, under the hash of its content: the same
	// data twice is one object. mediaType says what it is. It returns an *Error of code unsupported where no store is
	// connected, too_large beyond tool.MaxKept, forbidden, and those of the bus.
	Keep(data []byte, mediaType string) (protocol.Ref, error)
}
