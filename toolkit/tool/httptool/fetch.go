package httptool

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// Fetch gets an OpenAPI document by its URL, as a tool gets an answer: from what n lets it reach, within the bounds of
// redirects, and of MaxDocument in bytes. It ends with ctx. Its error is an *Error of code usage.
func Fetch(ctx context.Context, location string, n Network) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, protocol.Errorf(protocol.CodeUsage, "the document cannot be had: %s", err)
	}
	t, err := parseTemplate(location)
	if err != nil {
		return fail(err)
	}
	u, err := t.fill(&values{secrets: &opened{}})
	if err != nil {
		return fail(err)
	}
	c, err := newClient(&n)
	if err != nil {
		return fail(err)
	}
	defer c.close()
	resp, err := c.send(ctx, request{method: http.MethodGet, url: u, header: http.Header{
		"Accept": {"application/json, application/yaml, */*;q=0.1"}, "User-Agent": {"toolfabric"},
	}})
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fail(refusal(resp, time.Now(), scrubber{}))
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, MaxDocument+1))
	if err != nil {
		return fail(errBody)
	}
	if len(text) > MaxDocument {
		return fail(fmt.Errorf("it has more than %d bytes", MaxDocument))
	}
	return text, nil
}
