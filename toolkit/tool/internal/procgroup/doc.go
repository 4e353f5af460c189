// Package procgroup starts programs with all that they start as one thing, which ends as one and dies with its starter.
package procgroup
