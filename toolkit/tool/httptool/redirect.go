package httptool

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// redirected is the request that a response asks for; nil when it asks for none. It is checked like the first one when it
// is sent. Nothing but what says which answer is wanted goes to another origin, and the body never does.
func redirected(r request, resp *http.Response) (*request, error) {
	location := resp.Header.Get("Location")
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	if location == "" {
		return nil, errors.New("it says not where to")
	}
	to, err := url.Parse(location)
	if err != nil || len(location) > maxURL {
		return nil, errors.New("its location is no URL")
	}
	to = r.url.ResolveReference(to)
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, fmt.Errorf("it leads to the scheme %.20q", to.Scheme)
	case to.User != nil:
		return nil, errors.New("it leads to a URL with a user")
	case r.url.Scheme == "https" && to.Scheme != "https":
		return nil, errors.New("it leads from https to http")
	case to.Hostname() == "":
		return nil, errors.New("it leads to no host")
	}
	to.Fragment = ""
	next := request{method: r.method, url: to, header: r.header.Clone(), body: r.body, once: r.once}
	if resp.StatusCode <= http.StatusSeeOther && r.method != http.MethodGet && r.method != http.MethodHead {
		next.method, next.body = http.MethodGet, nil // as browsers do, and RFC 9110 allows; 307 and 308 keep the method
		next.header.Del("Content-Type")
		delete(next.header, idempotencyKey)
	}
	if originOf(to) == originOf(r.url) {
		return &next, nil
	}
	if next.method != http.MethodGet && next.method != http.MethodHead {
		return nil, fmt.Errorf("it leads a %s to another host", next.method)
	}
	next.header = http.Header{"Accept": r.header["Accept"], "User-Agent": r.header["User-Agent"]}
	return &next, nil
}

// originOf is scheme, host and port, the port written out.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + hostKey(u.Hostname()) + ":" + port
}
