// Package memory holds what a search of past conversations returns.
package memory

import (
	"context"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Service keeps what was said in past sessions and searches it. None is part of this version: a runner refuses one.
type Service interface {
	AddSessionToMemory(ctx context.Context, s session.Session) error
	SearchMemory(ctx context.Context, req *SearchRequest) (*SearchResponse, error)
}

// SearchRequest asks for what a user's past sessions with an app say about Query.
type SearchRequest struct {
	Query   string
	UserID  string
	AppName string
}

// SearchResponse is what a search found, best first.
type SearchResponse struct {
	Memories []Entry `json:"memories"`
}

// Entry is one remembered piece.
type Entry struct {
	ID             string         `json:"id"`
	Content        *genai.Content `json:"content"`
	Author         string         `json:"author"`
	Timestamp      time.Time      `json:"timestamp"`
	CustomMetadata map[string]any `json:"customMetadata,omitempty"`
}
