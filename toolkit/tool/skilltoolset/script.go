package skilltoolset

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exectool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// Scripts says which scripts of skills run, and how. A script works in a copy of its skill's folder, which is also its HOME
// and is removed when it ends; what it has to say it writes to standard output.
type Scripts struct {
	// Interpreters are the programs that run scripts, with their first arguments: the script's path and the call's arguments
	// follow. A key is an extension, ".py", or the program in a script's first line, "#!python3", which counts for scripts
	// whose extension is no key. Only what is named here runs. Programs are looked up in PATH once, by New.
	Interpreters map[string][]string
	// Unconfirmed lets scripts run without asking a person. What a person agrees to is a script's name and its arguments; the
	// script itself is the source's word.
	Unconfirmed bool
	// MaxOutput is how many bytes of standard output are read; 0 is exectool.DefaultMaxOutput. A script that writes more is
	// killed.
	MaxOutput int
	// Env is added to the script's environment, as NAME=value.
	Env []string

	Timeout   time.Duration // of one run; see tool.Settings
	MaxActive int           // running at once over the whole pool; 0 is no limit of its own
}

// Limits of one run.
const (
	maxScriptFiles = 64 << 20 // bytes of the skill's folder
	maxArgs        = 64
	maxArgBytes    = 64 << 10 // all arguments together
)

// interpreters are Scripts.Interpreters with the programs found.
type interpreters map[string][]string

var interpreterKey = regexp.MustCompile(`^(\.[a-z0-9]+|#![A-Za-z0-9._+-]+)$`)

func (s *Scripts) find() (interpreters, error) {
	found := interpreters{}
	for _, key := range slices.Sorted(maps.Keys(s.Interpreters)) {
		argv := s.Interpreters[key]
		if !interpreterKey.MatchString(key) {
			return nil, fmt.Errorf("scripts: %q is neither an extension in lower case, such as .py, nor a first line, such as #!python3", key)
		}
		if len(argv) == 0 || argv[0] == "" {
			return nil, fmt.Errorf("scripts: no interpreter for %s", key)
		}
		program, err := exec.LookPath(argv[0])
		if err == nil {
			program, err = filepath.Abs(program)
		}
		if err != nil {
			return nil, fmt.Errorf("scripts: the interpreter %q for %s is not there: %w", argv[0], key, err)
		}
		found[key] = append([]string{program}, argv[1:]...)
	}
	for _, kv := range s.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return nil, fmt.Errorf("scripts: %q is no NAME=value", kv)
		}
	}
	if s.MaxOutput < 0 || s.MaxOutput > exectool.DefaultMaxOutput {
		return nil, fmt.Errorf("scripts: a maximum output of %d bytes is not between 0 and %d", s.MaxOutput, exectool.DefaultMaxOutput)
	}
	if s.MaxOutput == 0 {
		s.MaxOutput = exectool.DefaultMaxOutput
	}
	return found, nil
}

// of is the interpreter of a script, by its extension and then by its first line.
func (i interpreters) of(name string, script []byte) ([]string, error) {
	if argv := i[strings.ToLower(path.Ext(name))]; argv != nil {
		return argv, nil
	}
	if argv := i["#!"+shebang(script)]; argv != nil {
		return argv, nil
	}
	return nil, fail(UnsupportedScriptType, "%s is no script that can run here; these can: %s", name, strings.Join(slices.Sorted(maps.Keys(i)), ", "))
}

// shebang is the program in a script's first line, without the way to it: python3 for #!/usr/bin/env python3.
func shebang(script []byte) string {
	first, _, _ := strings.Cut(string(script[:min(len(script), 256)]), "\n")
	line, ok := strings.CutPrefix(first, "#!")
	if !ok {
		return ""
	}
	words := strings.Fields(line)
	for i, w := range words {
		if base := path.Base(w); i > 0 && strings.HasPrefix(w, "-") || i == 0 && base == "env" {
			continue
		} else {
			return base
		}
	}
	return ""
}

type scriptArgs struct {
	SkillName  string   `json:"skill_name" jsonschema:"The name of the skill."`
	ScriptName string   `json:"script_name" jsonschema:"The script in the skill's scripts/ folder, such as setup.sh."`
	Args       []string `json:"args,omitempty" jsonschema:"The script's arguments, one by one: no shell reads them."`
}

type scriptResult struct {
	SkillName  string `json:"skill_name"`
	ScriptName string `json:"script_name"`
	Status     string `json:"status" jsonschema:"success, or error when the exit code is not 0."`
	Exit       string `json:"exit,omitempty" jsonschema:"How the script ended, when not well."`
	Stdout     string `json:"stdout" jsonschema:"What the script wrote; a data: URI when that is no text."`
	Stderr     string `json:"stderr" jsonschema:"The end of what it wrote to standard error."`
}

func (s *SkillToolset) runScript() (tool.Tool, error) {
	found, err := s.cfg.Scripts.find()
	if err != nil {
		return nil, err
	}
	return functiontool.New(functiontool.Config{
		Name: s.cfg.Prefix + RunSkillScript, Effect: tool.AtMostOnce, RequireConfirmation: !s.cfg.Scripts.Unconfirmed,
		Description: "Runs a script from a skill's scripts/ folder and returns what it writes.",
		Timeout:     s.cfg.Scripts.Timeout, MaxActive: s.cfg.Scripts.MaxActive,
	}, func(ctx tool.Context, in scriptArgs) (*scriptResult, error) { return s.run(ctx, found, in) })
}

func (s *SkillToolset) run(ctx tool.Context, found interpreters, in scriptArgs) (*scriptResult, error) {
	script, err := in.check()
	if err != nil {
		return nil, err
	}
	if _, err := s.cfg.Source.LoadFrontmatter(ctx, in.SkillName); err != nil {
		return nil, s.explain(ctx, err, in.SkillName, "")
	}
	text, err := s.read(ctx, in.SkillName, script)
	if errors.Is(err, skill.ErrResourceNotFound) {
		return nil, fail(ScriptNotFound, "skill %s has no script %.200q%s", in.SkillName, in.ScriptName, s.siblings(ctx, in.SkillName, script))
	}
	if err != nil {
		return nil, s.explain(ctx, err, in.SkillName, script)
	}
	argv, err := found.of(script, text)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "skill-")
	if err != nil {
		return nil, fail(ExecutionError, "no folder can be made for the script: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := s.unpack(ctx, in.SkillName, dir); err != nil {
		return nil, err
	}
	p := exectool.Process{
		Path: argv[0], Args: slices.Concat(argv, []string{filepath.FromSlash(script)}, in.Args), Dir: dir,
		Env: append([]string{"HOME=" + dir, "TMPDIR=" + dir}, s.cfg.Scripts.Env...), MaxOutput: s.cfg.Scripts.MaxOutput,
	}
	ended, err := p.Run(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, tool.WithErrorCode(ExecutionError, err)
	}
	r := &scriptResult{SkillName: in.SkillName, ScriptName: in.ScriptName, Status: "success", Exit: ended.Exit, Stdout: string(ended.Stdout), Stderr: ended.Stderr}
	if ended.Exit != "" {
		r.Status = "error"
	}
	if !utf8.Valid(ended.Stdout) {
		r.Stdout = "data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString(ended.Stdout)
	}
	return r, nil
}

// check returns the path of the script in its skill.
func (in *scriptArgs) check() (string, error) {
	switch {
	case in.SkillName == "":
		return "", fail(MissingSkillName, "a skill's name is needed")
	case in.ScriptName == "":
		return "", fail(MissingScriptName, "the name of a script of skill %.80q is needed", in.SkillName)
	case len(in.Args) > maxArgs:
		return "", fail(InvalidArguments, "%d arguments are more than %d", len(in.Args), maxArgs)
	}
	size := 0
	for i, a := range in.Args {
		if size += len(a); size > maxArgBytes {
			return "", fail(InvalidArguments, "the arguments have more than %d bytes", maxArgBytes)
		}
		if strings.ContainsRune(a, 0) {
			return "", fail(InvalidArguments, "/args/%d: holds a NUL byte", i)
		}
	}
	script := in.ScriptName
	if !strings.HasPrefix(script, "scripts/") {
		script = "scripts/" + script
	}
	script, err := skill.CleanPath(script)
	if err == nil && !strings.HasPrefix(script, "scripts/") {
		err = fmt.Errorf("%w: %.80q is not within scripts/", skill.ErrInvalidResourcePath, in.ScriptName)
	}
	return script, tool.WithErrorCode(InvalidResourcePath, err)
}

// unpack copies the skill's files into dir, which nothing leaves.
func (s *SkillToolset) unpack(ctx tool.Context, name, dir string) error {
	paths, err := s.cfg.Source.ListResources(ctx, name, ".")
	if err != nil {
		return s.explain(ctx, err, name, "")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fail(ExecutionError, "the script's folder cannot be used: %w", err)
	}
	defer root.Close()
	left := maxScriptFiles
	for _, p := range paths {
		data, err := s.read(ctx, name, p)
		if err != nil {
			return s.explain(ctx, err, name, p)
		}
		if left -= len(data); left < 0 {
			return fail(ResourceTooLarge, "the files of skill %s have more than %d bytes: too many to run a script with", name, maxScriptFiles)
		}
		if err := root.MkdirAll(filepath.FromSlash(path.Dir(p)), 0o700); err != nil {
			return fail(ExecutionError, "the script's folder cannot be filled: %w", err)
		}
		if err := root.WriteFile(filepath.FromSlash(p), data, 0o600); err != nil {
			return fail(ExecutionError, "the script's folder cannot be filled: %w", err)
		}
	}
	return nil
}
