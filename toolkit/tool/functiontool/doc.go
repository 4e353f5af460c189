// Package functiontool makes a tool of a Go function. Schemas come from the function's types, arguments are checked
// before it runs, and what it returns is what the model reads. Names and behaviour are those of ADK's functiontool, so
// that its tools move by a change of imports; Config adds the settings of the tool's pool.
package functiontool
