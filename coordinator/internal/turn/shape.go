package turn

import (
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

// processes reports whether a tool shapes requests.
func processes(t tool.Tool) bool {
	_, ok := tool.As[tool.RequestProcessor](t)
	return ok
}

// Offered reports whether a tool is offered as a registry knows it: it may be called, by a worker, and is not there only to
// shape requests.
func Offered(t tool.Tool) bool {
	if exitlooptool.Is(t) {
		return false // it needs no worker: ExitOffer
	}
	_, runs := tool.AsRunnable(t)
	return runs || !processes(t)
}

// Shaper is a tool or toolset that shapes requests.
type Shaper struct {
	Name string // for logs and problems: "tool preload_memory"
	tool.RequestProcessor
}

// Request has shapers and before-model callbacks look at a request, which is theirs to change: the one that is returned. An
// answer is a callback's, in the model's place.
func (m *Moment) Request(req *model.LLMRequest, shapers []Shaper) (*model.LLMRequest, *model.LLMResponse, error) {
	if len(shapers)+len(m.Hooks.beforeModel)+len(m.Hooks.onModelError) == 0 {
		return req, nil, nil
	}
	req = cloneRequest(req)
	for name, t := range m.Tools {
		if req.Tools == nil {
			req.Tools = map[string]any{}
		}
		req.Tools[name] = t
	}
	for _, s := range shapers {
		l := m.enter(nil, nil)
		_, err := contain(m, "ProcessRequest of "+s.Name, func() (struct{}, error) { return struct{}{}, s.ProcessRequest(l, req) })
		if err == nil {
			err = m.keep(l)
		}
		if err != nil {
			return nil, nil, fails("ProcessRequest of "+s.Name, err)
		}
	}
	l := m.enter(nil, nil)
	resp, name, err := first(m, m.Hooks.beforeModel, isResponse, func(f llmagent.BeforeModelCallback) (*model.LLMResponse, error) { return f(l, req) })
	if err == nil {
		err = m.keep(l)
	}
	if err != nil {
		return nil, nil, fails(name, err)
	}
	return req, resp, nil
}

func isResponse(r *model.LLMResponse) bool { return r != nil }

// Response has on-error and after-model callbacks look at what a model answered to req, or at the error that there is instead.
func (m *Moment) Response(req *model.LLMRequest, resp *model.LLMResponse, problem error) (*model.LLMResponse, error) {
	if problem != nil && len(m.Hooks.onModelError) > 0 {
		l := m.enter(nil, nil)
		r, name, err := first(m, m.Hooks.onModelError, isResponse, func(f llmagent.OnModelErrorCallback) (*model.LLMResponse, error) { return f(l, req, problem) })
		if err == nil {
			err = m.keep(l)
		}
		switch {
		case err != nil:
			resp, problem = nil, fails(name, err)
		case r != nil:
			resp, problem = r, nil
		}
	}
	if len(m.Hooks.afterModel) == 0 {
		return resp, problem
	}
	l := m.enter(nil, nil)
	resp = clone(resp)
	r, name, err := first(m, m.Hooks.afterModel, isResponse, func(f llmagent.AfterModelCallback) (*model.LLMResponse, error) { return f(l, resp, problem) })
	if err == nil {
		err = m.keep(l)
	}
	switch {
	case err != nil:
		return nil, fails(name, err)
	case r != nil:
		return r, nil
	}
	return resp, problem
}
