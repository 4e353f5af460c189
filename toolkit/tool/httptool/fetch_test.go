package httptool_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

func TestADocumentIsFetchedWithinBounds(t *testing.T) {
	s := record(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/openapi.json":
			_, _ = io.WriteString(w, `{"openapi":"3.0.0"}`)
		case "/moved":
			http.Redirect(w, r, "/openapi.json", http.StatusFound)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case "/endless":
			for chunk := make([]byte, 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	for path, want := range map[string]string{
		"/openapi.json": "", "/moved": "", "/metadata": "is not public", "/endless": "more than 16777216 bytes", "/nope": "HTTP 404", "/{a}": "is missing or empty",
	} {
		text, err := httptool.Fetch(t.Context(), s.URL+path, loopback)
		if want == "" && (err != nil || string(text) != `{"openapi":"3.0.0"}`) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v", path, text, err)
		}
	}
	if _, err := httptool.Fetch(t.Context(), s.URL+"/openapi.json", httptool.Network{}); err == nil || !strings.Contains(err.Error(), "is not public") {
		t.Error(err)
	}
	for _, location := range []string{"file:///etc/passwd", "ftp://example.com/x", "openapi.yaml"} {
		if _, err := httptool.Fetch(t.Context(), location, loopback); err == nil || !strings.Contains(err.Error(), "is no URL") {
			t.Errorf("%s: %v", location, err)
		}
	}
}
