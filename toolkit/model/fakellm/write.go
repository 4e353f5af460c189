package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

// apiFault is an error in Google's form.
type apiFault struct {
	status     int
	message    string
	retryAfter time.Duration
}

func (f *apiFault) Error() string { return f.message }

func invalid(format string, args ...any) *apiFault {
	return &apiFault{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

var statusNames = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
	413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED",
	503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func writeFault(w http.ResponseWriter, f *apiFault) {
	name := statusNames[f.status]
	if name == "" {
		name = "UNKNOWN"
	}
	e := map[string]any{"code": f.status, "message": f.message, "status": name}
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
		e["details"] = []any{map[string]any{
			"@type":      "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": strconv.FormatFloat(f.retryAfter.Seconds(), 'f', -1, 64) + "s",
		}}
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": e})
}

// wire is a chunk as Gemini writes it.
func wire(c scripted.Chunk, version string) []byte {
	candidate := map[string]any{"index": 0}
	if c.Parts != nil {
		candidate["content"] = map[string]any{"role": genai.RoleModel, "parts": c.Parts}
	}
	if c.FinishReason != "" {
		candidate["finishReason"] = c.FinishReason
	}
	out := map[string]any{"candidates": []any{candidate}, "modelVersion": version, "responseId": "scripted"}
	if c.Usage != nil {
		out["usageMetadata"] = c.Usage
	}
	b, err := json.Marshal(out)
	if err != nil { // a template cannot make such a value
		panic(fmt.Sprintf("encode an answer: %v", err))
	}
	return b
}

// writeStream sends the chunks as server-sent events. A cut stream ends without its last chunk and with the connection.
func writeStream(w http.ResponseWriter, r *http.Request, version string, reply *scripted.Reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for i, c := range reply.Chunks {
		if reply.Cut && i == len(reply.Chunks)-1 {
			break
		}
		if !pause(r, reply.Delay) {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\r\n\r\n", wire(c, version)); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
	}
	if reply.Cut {
		_ = out.Flush()
		panic(http.ErrAbortHandler)
	}
}

// writeWhole sends the chunks as one answer.
func writeWhole(w http.ResponseWriter, r *http.Request, version string, reply *scripted.Reply) {
	whole := scripted.Chunk{Parts: []*genai.Part{}}
	for _, c := range reply.Chunks {
		if !pause(r, reply.Delay) {
			return
		}
		whole.Parts = append(whole.Parts, c.Parts...)
		if c.FinishReason != "" {
			whole.FinishReason = c.FinishReason
		}
		if c.Usage != nil {
			whole.Usage = c.Usage
		}
	}
	b := bytes.NewBuffer(wire(whole, version))
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	if reply.Cut {
		_, _ = w.Write(b.Bytes()[:b.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = b.WriteTo(w)
}

// pause waits and reports whether the client is still there.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
