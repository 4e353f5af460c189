package agent

// StreamingMode says whether a run yields pieces of an answer before the whole of it.
type StreamingMode string

// The modes. The zero value means StreamingModeNone.
const (
	StreamingModeNone StreamingMode = "none"
	StreamingModeSSE  StreamingMode = "sse" // pieces of text as events with Partial set, then the whole
)

// RunConfig is how a program wants to see a run.
type RunConfig struct {
	StreamingMode StreamingMode
	// SaveInputBlobsAsArtifacts is refused: no artifact service is part of this version.
	SaveInputBlobsAsArtifacts bool
}
