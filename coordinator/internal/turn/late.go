package turn

import (
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
)

// placed is an exchange whose responses stand in the conversation and may change.
type placed struct {
	*exchange
	at       int    // of its responses in the contents
	runStart int    // where its run begins in the contents
	news     uint64 // sequence of the newest event that changed it and that no model was asked about; 0 is none
}

// close puts the responses of the open exchange into the conversation. Answers that are missing are given up, but for calls
// that the model was told to be pending: their end replaces that, in the same place.
func (h *History) close() {
	if h.open == nil {
		return
	}
	h.append(h.open.responses(nil), h.open.agent)
	h.open.closed = true
	if h.open.isPending() {
		h.pending = append(h.pending, &placed{exchange: h.open, at: len(h.contents) - 1, runStart: h.runStart})
	}
	h.open = nil
}

// revise brings answers to older exchanges.
func (h *History) revise(answers []protocol.Answer) {
	for _, x := range h.pending {
		if x.add(answers) {
			x.news = h.seq
			h.contents[x.at] = x.responses(nil)
		}
	}
}

// told notes that a model was asked with what the log held up to seq, and with the answers of the event that is being read.
func (h *History) told(seq uint64) {
	h.pending = slices.DeleteFunc(h.pending, func(x *placed) bool {
		if x.news <= seq || x.news == h.seq {
			x.news = 0
		}
		return x.news == 0 && !x.isPending()
	})
}

// news is the newest exchange with a change that is all there is to tell a model of; nil when there is none, or more.
func (h *History) news(open []protocol.Answer) *placed {
	if h.open != nil || len(h.waiting) > 0 {
		return nil
	}
	for _, x := range slices.Backward(h.pending) {
		if x.news > 0 || x.changes(open) {
			return x
		}
	}
	return nil
}
