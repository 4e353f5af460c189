package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/skills"
	"github.com/toolfabric/toolfabric/protocol"
)

func (a *app) skillsCmd() *cobra.Command {
	put := &cobra.Command{
		Use: "put DIR...", Short: "Store skills, each in the place of one of its name", Args: cobra.MinimumNArgs(1),
		Long: `Put checks each folder, a SKILL.md and what belongs to it, and stores it for all coordinators, whose agents have it from their
next turn on. What begins with a dot is left out. Nothing is stored when one of the folders is broken. Whoever may do this tells
agents what to do: the right to write the store of skills is one to give sparingly.`,
		Example: "  toolfabric skills put ./skills/pdf-forms\n  toolfabric skills put ./skills/*",
		RunE:    a.do(a.skillsPut),
	}
	ls := &cobra.Command{
		Use: "ls", Short: "List the skills that are stored", Args: cobra.NoArgs,
		Example: "  toolfabric skills ls\n  toolfabric skills ls --output json",
		RunE:    a.do(a.skillsLs),
	}
	show := &cobra.Command{
		Use: "show NAME", Short: "Show a skill: what it says, and its files", Args: cobra.ExactArgs(1),
		Example: "  toolfabric skills show pdf-forms\n  toolfabric skills show pdf-forms --output json | jq -r .instructions",
		RunE:    a.do(a.skillsShow),
	}
	rm := &cobra.Command{
		Use: "rm NAME...", Short: "Remove skills", Args: cobra.MinimumNArgs(1),
		Example: "  toolfabric skills rm pdf-forms",
		RunE:    a.do(a.skillsRm),
	}
	return group("skills", "Skills that all coordinators share", "  toolfabric skills\n  toolfabric skills put ./skills/pdf-forms", ls, put, show, rm)
}

// useSkills connects to the store of skills.
func (a *app) useSkills(ctx context.Context, use func(*skills.Store) error) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	return a.absent(ctx, l, use(skills.New(l.conn)))
}

// packFolder reads a folder through a root, which no link leaves.
func packFolder(dir string) (*skills.Package, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the folder %s cannot be read", dir)
	}
	defer root.Close()
	if _, err := root.Stat("SKILL.md"); errors.Is(err, fs.ErrNotExist) {
		what := "a skill is a folder with a SKILL.md, and there is none in " + dir
		if below, err := fs.Glob(root.FS(), "*/SKILL.md"); err == nil && len(below) > 0 {
			what += "; there are in the folders below: toolfabric skills put " + boot.Quoted(filepath.Clean(dir)) + "/*"
		}
		return nil, protocol.Errorf(protocol.CodeUsage, "%s", what)
	}
	p, err := skills.Pack(root.FS())
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeUsage, "%s: %s", dir, protocol.ProblemOf(err).Message)
	}
	if abs, err := filepath.Abs(dir); err == nil && filepath.Base(abs) != p.Name {
		return nil, protocol.Errorf(protocol.CodeUsage, "%s: SKILL.md says that the skill is named %q; rename the folder or the skill", dir, p.Name)
	}
	return p, nil
}

// putSkill is what put says of one skill.
type putSkill struct {
	Name    string `json:"name"`
	Size    int    `json:"size"` // bytes of its archive
	Changed bool   `json:"changed"`
}

func (a *app) skillsPut(ctx context.Context, dirs []string) error {
	var packages []*skills.Package
	var faults []string
	for _, dir := range dirs {
		p, err := packFolder(dir)
		if err != nil {
			faults = append(faults, protocol.ProblemOf(err).Message)
			continue
		}
		packages = append(packages, p)
	}
	if len(faults) > 0 {
		return protocol.Errorf(protocol.CodeUsage, "%s", strings.Join(faults, "\n"))
	}
	var done []putSkill
	err := a.useSkills(ctx, func(s *skills.Store) error {
		for _, p := range packages {
			changed, err := s.Put(ctx, p)
			if err != nil {
				return fmt.Errorf("skill %s: %w", p.Name, err)
			}
			done = append(done, putSkill{Name: p.Name, Size: len(p.Archive), Changed: changed})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.print(done, func() error {
		for _, p := range done {
			what := "stored"
			if !p.Changed {
				what = "unchanged"
			}
			if _, err := fmt.Fprintf(a.out, "%s %s (%s)\n", what, p.Name, bytesText(int64(p.Size))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) skillsLs(ctx context.Context, _ []string) error {
	var list []skills.Skill
	err := a.useSkills(ctx, func(s *skills.Store) (err error) {
		list, err = s.List(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(list, func() error {
		rows := make([][]string, 0, len(list))
		for _, s := range list {
			rows = append(rows, []string{s.Name, bytesText(s.Size), ago(s.PutAt), short(s.Digest), term.Clip(s.Description, 60)})
		}
		return a.list([]string{"SKILL", "SIZE", "PUT", "DIGEST", "DESCRIPTION"}, rows, "no skills yet; store one with: toolfabric skills put DIR")
	})
}

func (a *app) skillsShow(ctx context.Context, args []string) error {
	var d *skills.Detail
	err := a.useSkills(ctx, func(s *skills.Store) (err error) {
		d, err = s.Get(ctx, args[0])
		return err
	})
	if err != nil {
		return err
	}
	return a.print(d, func() error {
		var b strings.Builder
		for _, row := range [][2]string{
			{"name", d.Name}, {"description", d.Frontmatter.Description}, {"license", d.Frontmatter.License}, {"compatibility", d.Frontmatter.Compatibility},
			{"allowed tools", strings.Join(d.Frontmatter.AllowedTools, " ")}, {"size", bytesText(d.Size)}, {"digest", d.Digest},
			{"put", d.PutAt.Local().Format(time.DateTime) + " (" + ago(d.PutAt) + ")"},
		} {
			if row[1] != "" {
				fmt.Fprintf(&b, "%-14s %s\n", row[0], term.EscapeLine(row[1]))
			}
		}
		b.WriteString("\nfiles\n")
		for _, f := range d.Files {
			fmt.Fprintf(&b, "  %s (%s)\n", term.EscapeLine(f.Path), bytesText(f.Size))
		}
		b.WriteString("\n" + strings.TrimRight(d.Instructions, "\n") + "\n")
		return a.write(a.out.Text(b.String()))
	})
}

func (a *app) skillsRm(ctx context.Context, names []string) error {
	return a.useSkills(ctx, func(s *skills.Store) error {
		for _, name := range names {
			if err := s.Remove(ctx, name); err != nil {
				return err
			}
			a.say("removed %s", name)
		}
		return nil
	})
}

// bytesText is a size as people read it.
func bytesText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
