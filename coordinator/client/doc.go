// Package client is how everything outside a coordinator speaks with sessions: the command line, gateways, runners and
// tests send messages, make single calls, watch runs and read logs, tools and pools through it.
//
// It promises that an input is accepted when Send has returned, that the same input id is the same input however often it
// is sent, and that a watcher sees every event of a log once, in order. What it shows while a run goes on beside the log
// (tokens, progress) is lossy and never truth. It keeps no state that matters: any other process may wait for what this
// one has sent.
package client
