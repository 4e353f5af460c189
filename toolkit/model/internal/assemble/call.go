package assemble

import (
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// openCall is a call that came with willContinue: its arguments arrive in fragments, and it is no call until its end.
type openCall struct {
	part *genai.Part
	args *tree
}

func (o *openCall) name() string { return o.part.FunctionCall.Name }

// call files a part that is a call or a fragment of one.
func (a *Assembler) call(p *genai.Part) error {
	f := p.FunctionCall
	more := f.WillContinue != nil && *f.WillContinue
	if a.open != nil && continues(a.open, f) {
		if len(a.open.part.ThoughtSignature) == 0 {
			a.open.part.ThoughtSignature = p.ThoughtSignature
		}
		return a.fragment(f.PartialArgs, more)
	}
	if a.open != nil {
		return protocol.Errorf(protocol.CodeModelFailed, "the model began to call %q inside its call of %q", f.Name, a.open.name())
	}
	if f.Name == "" {
		return protocol.Errorf(protocol.CodeModelFailed, "the model sent a piece of a call that it had not begun")
	}
	part, call := *p, *f
	call.PartialArgs, call.WillContinue = nil, nil
	part.FunctionCall = &call
	if !more && len(f.PartialArgs) == 0 {
		if call.Args == nil {
			call.Args = map[string]any{}
		}
		a.complete(&part)
		return nil
	}
	a.open = &openCall{part: &part, args: newTree(call.Args)}
	return a.fragment(f.PartialArgs, more)
}

// continues reports whether f is the next piece of o: it has no name of its own, or repeats o's id.
func continues(o *openCall, f *genai.FunctionCall) bool {
	id := o.part.FunctionCall.ID
	return f.Name == "" && (f.ID == "" || f.ID == id) || f.ID != "" && f.ID == id && f.Name == o.name()
}

func (a *Assembler) fragment(args []*genai.PartialArg, more bool) error {
	for _, arg := range args {
		if err := a.open.args.set(arg); err != nil {
			return protocol.Wrap(err, protocol.CodeModelFailed, "the model's call of %q cannot be put together: %v", a.open.name(), err)
		}
	}
	if more {
		return nil
	}
	whole, err := a.open.args.build()
	if err != nil {
		return protocol.Wrap(err, protocol.CodeModelFailed, "the model's call of %q cannot be put together: %v", a.open.name(), err)
	}
	a.open.part.FunctionCall.Args = whole
	a.complete(a.open.part)
	a.open = nil
	return nil
}

func (a *Assembler) complete(p *genai.Part) {
	a.parts = append(a.parts, p)
	a.calls = append(a.calls, p)
}
