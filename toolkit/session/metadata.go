package session

import "time"

// Keys of an event's CustomMetadata that the fabric writes beside ADK's protocol.
const (
	// MetadataPlaceholders lists the ids of calls whose response in the event only says that people are asked: a []string.
	MetadataPlaceholders = "toolfabric.placeholders"
	// MetadataTerms says how each question of the event is to be decided, by confirmation id: a map[string]Terms.
	MetadataTerms = "toolfabric.terms"
	// MetadataApprover names who made the decision that the event shows: a string.
	MetadataApprover = "toolfabric.approver"
)

// Terms is what a confirmation request asks of whoever decides it.
type Terms struct {
	// Reply is the NATS subject to publish the decision on; its last token, "*", stands for the approver. Empty is unknown.
	Reply        string    `json:"reply,omitempty"`
	Origin       string    `json:"origin"` // who asks: flag, provider, tool, callback, or the name of a policy rule
	Digest       string    `json:"digest"` // of what is agreed to; a decision may repeat it
	Expires      time.Time `json:"expires"`
	Need         int       `json:"need"` // distinct approvers who must agree
	NotRequester bool      `json:"notRequester,omitempty"`
}
