// Package host serves tools and toolsets with one worker at a time. A set whose list changes is listed again; when that makes
// a difference, a worker with the new tools starts and the one before drains, so that no call is lost and none is refused in
// between.
package host
