package skill

import (
	"context"
	"errors"
	"io"
)

// What is wrong, for errors.Is.
var (
	ErrInvalidSkillName    = errors.New("invalid skill name")
	ErrInvalidFrontmatter  = errors.New("invalid frontmatter")
	ErrSkillNotFound       = errors.New("skill not found")
	ErrDuplicateSkill      = errors.New("duplicate skill")
	ErrInvalidResourcePath = errors.New("invalid resource path")
	ErrResourceNotFound    = errors.New("resource not found")
	ErrTooLarge            = errors.New("too large")
)

// Limits of what a source reads. Sizes are bytes.
const (
	MaxFrontmatter  = 16 << 10  // between the two separators of a SKILL.md
	MaxInstructions = 256 << 10 // below them
	MaxResource     = 10 << 20  // one file
	MaxResources    = 2000      // files of one skill
	MaxSkills       = 1000      // of one source
)

// Source is where skills come from. All methods may be called concurrently. Their errors have the sentinels of this package
// in their chain where one applies.
type Source interface {
	// ListFrontmatters returns the skills there are, by name. When some are broken it returns the others and, beside them, a
	// *BrokenError that says what is wrong with which, as os.ReadDir returns what it has read. With any other error the list
	// is empty.
	ListFrontmatters(ctx context.Context) ([]*Frontmatter, error)

	// ListResources returns the files of a skill below subpath, in order; "" and "." stand for all. Paths, subpath too, are
	// relative to the skill's folder: references/forms.md.
	ListResources(ctx context.Context, name, subpath string) ([]string, error)

	// LoadFrontmatter returns what one skill says about itself.
	LoadFrontmatter(ctx context.Context, name string) (*Frontmatter, error)

	// LoadInstructions returns the text below a skill's frontmatter, with line ends of Unix.
	LoadInstructions(ctx context.Context, name string) (string, error)

	// LoadResource opens a file of a skill, which must be in its references/, assets/ or scripts/. The caller closes it.
	// Reading more than MaxResource bytes fails with ErrTooLarge.
	LoadResource(ctx context.Context, name, resourcePath string) (io.ReadCloser, error)
}
