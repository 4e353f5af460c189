// Package artifact holds what the artifact service says about files that sessions keep.
package artifact

import (
	"context"

	"google.golang.org/genai"
)

// Service keeps the files of sessions. None is part of this version: a runner refuses one.
type Service interface {
	Save(ctx context.Context, req *SaveRequest) (*SaveResponse, error)
	Load(ctx context.Context, req *LoadRequest) (*LoadResponse, error)
	List(ctx context.Context, req *ListRequest) (*ListResponse, error)
}

// SaveRequest is a file and the session it belongs to.
type SaveRequest struct {
	AppName, UserID, SessionID, FileName string
	Part                                 *genai.Part
}

// LoadRequest names a file. Version 0 is the newest.
type LoadRequest struct {
	AppName, UserID, SessionID, FileName string
	Version                              int64
}

// ListRequest names a session.
type ListRequest struct{ AppName, UserID, SessionID string }

// SaveResponse tells which version was written; the first is 1.
type SaveResponse struct{ Version int64 }

// ListResponse lists file names in order.
type ListResponse struct{ FileNames []string }

// LoadResponse is one version of a file.
type LoadResponse struct{ Part *genai.Part }
