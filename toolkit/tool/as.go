package tool

// As finds an ability of a tool that not every tool has, one of Runnable, RunnerJSON, RunnerStream, Asker, Configured,
// RequestProcessor or an interface of your own: that of t, or of the nearest tool below it that t was put around. It is to
// tools what errors.As is to errors, and the way to ask: a type assertion sees the outermost layer only.
//
// What it returns may be a tool below t, whose name, description and declaration are not those of t. Ask t for these, and
// use of the ability only what it adds.
//
// A layer of your own that changes one thing embeds the Tool or Runnable below it, has an Unwrap() Tool that returns it, and
// the methods it changes. One that changes how the tool runs has Run and either RunJSON too or no Unwrap: else RunJSON
// of the tool below is called past it.
func As[T any](t Tool) (T, bool) {
	for t != nil {
		if able, ok := t.(T); ok {
			return able, true
		}
		t = unwrap(t)
	}
	var none T
	return none, false
}

// unwrap is the tool below t; nil when there is none.
func unwrap(t Tool) Tool {
	if layer, ok := t.(interface{ Unwrap() Tool }); ok {
		return layer.Unwrap()
	}
	return nil
}

// AsRunnable is As[Runnable], and for a tool that only streams, a Runnable that joins what it says: how t runs, if it does.
func AsRunnable(t Tool) (Runnable, bool) {
	if r, ok := As[Runnable](t); ok {
		return r, true
	}
	if s, ok := As[RunnerStream](t); ok {
		return &joined{s}, true
	}
	return nil, false
}
