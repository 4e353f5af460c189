// Package term writes for people at terminals: what a tool or a model said cannot move their cursor, and tables line up.
package term
