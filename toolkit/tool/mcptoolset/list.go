package mcptoolset

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxPages bounds how many pages of a list are asked for.
const maxPages = 200

// listError says what is wrong with a list that was answered.
type listError struct{ text string }

func (e *listError) Error() string { return e.text }

// list reads the server's tools, page by page, with what is wrong by name. A list whose session is lost on the way is read
// anew, once.
func (s *set) list(ctx context.Context) (tools []*mcp.Tool, faults map[string]string, err error) {
	for try := 0; ; try++ {
		session, err := s.link.get(ctx)
		if err != nil {
			return nil, nil, err
		}
		f := &flight{}
		f.watched.Store(s.watched)
		tools, faults, err = s.pages(withFlight(ctx, f), session)
		s.link.release(session, err == nil)
		if _, bad := errors.AsType[*listError](err); err == nil || bad || ctx.Err() != nil {
			return tools, faults, err
		}
		if fate := f.fate(err); fate == told || fate == refused || try > 0 {
			return nil, nil, err
		}
		s.link.drop(session)
	}
}

func (s *set) pages(ctx context.Context, session *mcp.ClientSession) ([]*mcp.Tool, map[string]string, error) {
	var tools []*mcp.Tool
	faults := map[string]string{}
	cursors := map[string]bool{}
	seen := map[string]bool{}
	params := &mcp.ListToolsParams{}
	for range maxPages {
		page, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range page.Tools {
			switch {
			case t == nil || t.Name == "":
				faults[""] = "it has no name"
			case seen[t.Name]:
				faults[t.Name] = "the server lists it twice; the first one counts"
			case len(tools) == s.cfg.MaxTools:
				faults[t.Name] = fmt.Sprintf("the server has more than %d tools", s.cfg.MaxTools)
				return tools, faults, nil
			default:
				seen[t.Name] = true
				tools = append(tools, t)
			}
		}
		if page.NextCursor == "" {
			return tools, faults, nil
		}
		if cursors[page.NextCursor] {
			return nil, nil, &listError{"its pages go in circles: a cursor came twice"}
		}
		cursors[page.NextCursor] = true
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, nil, &listError{fmt.Sprintf("its list has more than %d pages", maxPages)}
}
