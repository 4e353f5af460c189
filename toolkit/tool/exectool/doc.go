// Package exectool makes a tool of a command. No shell is involved: arguments of the call fill whole elements of the
// command line, go to its standard input, or both. The command gets a clean environment and a process group of its own,
// which is killed as a whole when the call ends. When its worker is killed, on Linux the command dies with it; what the
// command itself has started does not.
//
// It guards against what a model may put into arguments: shell syntax means nothing, options cannot be smuggled in, sizes
// and time are bounded. It is no sandbox: the command may do whatever the worker's user may do.
package exectool
