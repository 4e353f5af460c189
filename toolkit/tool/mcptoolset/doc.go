// Package mcptoolset makes the tools of an MCP server tools of the fabric. Package name, New and the first fields of Config
// are those of Google's ADK.
//
// A toolset has one session with its server, shared by all calls: MCP servers keep state per session (an open page, a
// database transaction), so that calls spread over several would miss what the one before them did. More throughput is more
// workers, each with its own server. The session is opened by the first call or listing, outlives it, is looked after when
// it lay idle, and is opened anew when the server lost it or died.
//
// A call is repeated only when that is safe: when it provably never reached the server's tool (the connection could not be
// used, or an HTTP server answered 404, the session is gone) once, for every tool; when the connection broke while the tool
// ran, for tools whose effect class is read or idempotent. Otherwise the call ends as outcome_unknown (tool.OutcomeUnknown).
//
// A server is not trusted. What it says about its tools (readOnlyHint, idempotentHint) may raise a tool's effect class, and
// lowers it only when Config.Trust says so; a tool that is called destructive asks a person first. Lists, descriptions, schemas, results
// and questions are bounded; a tool that cannot be offered is left out and named in the log, and never takes down the others.
// Descriptions and schemas are in a tool's digest: a server that changes one makes another version of the tool.
//
// A server's question to a person (elicitation) becomes a confirmation of the call. Servers of the protocol 2026-07-28 answer
// with the question, and the call parks; older ones wait inside the call, which keeps its slot until Config.ElicitLimit.
//
// Not supported: sampling, roots, and tools that demand task execution of the protocol 2025-11-25, which fail and say so.
package mcptoolset
