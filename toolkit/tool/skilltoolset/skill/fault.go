package skill

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is what is wrong with one skill.
type Fault struct {
	Skill        string // the name of its folder
	File         string // SKILL.md, with as much of the way to it as the source knows
	Line, Column int    // from 1; 0 when the fault has no place
	Err          error  // has ErrInvalidFrontmatter, ErrInvalidSkillName, ErrDuplicateSkill or ErrTooLarge in its chain
}

func (f *Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.File, f.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// BrokenError is what is wrong with the skills that a list leaves out, in the order of their names. It is printed one per
// line.
type BrokenError struct{ Faults []*Fault }

func (e *BrokenError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

func (e *BrokenError) Unwrap() []error {
	all := make([]error, len(e.Faults))
	for i, f := range e.Faults {
		all[i] = f
	}
	return all
}

// Broken takes the error of a list apart: faults are of the skills that it leaves out, err is what left no list at all.
func Broken(listed error) (faults []*Fault, err error) {
	if e, ok := errors.AsType[*BrokenError](listed); ok {
		return e.Faults, nil
	}
	return nil, listed
}

// broken is the error of a list that leaves out those with faults.
func broken(faults []*Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &BrokenError{Faults: faults}
}

// placed is an error at a place of a SKILL.md.
type placed struct {
	line, column int
	message      string
}

func (p *placed) Error() string { return fmt.Sprintf("line %d: %s", p.line, p.message) }

// faultOf gives an error of a SKILL.md its file. An error that has a place of its own tells it in front.
func faultOf(name, file string, err error) *Fault {
	f := &Fault{Skill: name, File: file, Err: err}
	if p, ok := errors.AsType[*placed](err); ok {
		f.Line, f.Column = p.line, p.column
		f.Err = fmt.Errorf("%w: %s", ErrInvalidFrontmatter, p.message)
	}
	return f
}
