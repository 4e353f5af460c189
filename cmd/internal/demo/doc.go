// Package demo is the tour: a nats-server, a coordinator, two workers and a model that is a script, each a process of its
// own but the server, and an agent that is asked about real files. One worker is killed in the middle of a call, and the
// coordinator while the session waits for a person.
//
// It promises that what it shows has happened: the answer is compared with facts computed here, effects are counted in a
// file that the tools write, and a tour in which anything differs says so. Nothing it starts outlives Run.
package demo
