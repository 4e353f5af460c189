// Package invoke is one execution of one tool: arguments checked against the schema, the tool's context, the timeout,
// panics contained, the answer made a JSON object that every model can read. Workers and the coordinator run tools
// through it and through nothing else.
//
// It refuses at construction what would fail at each call: a name that cannot be a subject, a schema that does not
// compile, a tool that cannot run on a worker.
package invoke
