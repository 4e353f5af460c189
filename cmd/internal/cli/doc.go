// Package cli is the command line: a file per verb. Data goes to stdout, talk to stderr; --output json prints the same data
// for programs. Exit codes: 0 ok, 2 usage or configuration, 3 authentication or permission, 4 unreachable, 5 refused or
// failed run, 6 internal, 130 interrupted.
package cli
