// Package protocol holds what the parts of Toolfabric say to each other: inputs, events, turns, calls, results and
// declarations, the closed table of codes, ids and the strict JSON decoder every message from outside goes through.
//
// It promises that a value written by one released version is read by the next, and that nothing here knows the broker,
// a clock or a model: package natswire maps these types to subjects and streams. Standard library only.
package protocol
