// Package skills keeps skills on the bus, so that all coordinators share them: each is one object, a zip of its folder, in the
// object store of skills. A source over it sees what was put, replaced or removed at its next call, without a restart. An
// archive is checked when it is put and again when it is read: others may write there too.
package skills
