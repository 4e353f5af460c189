// Package view shows a session's log as people want to see it: as the events that ADK's clients know, and as a tree of
// spans. Both are pure projections: the same log gives the same view, and the view of a log's beginning is the beginning
// of the view (of events exactly; of spans except those that were still open).
package view
