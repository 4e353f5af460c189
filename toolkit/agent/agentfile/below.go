package agentfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// MaxAgents is how many agents one file may make, with those below it. Each is read before names are compared, so that
// without a limit a few small files that name each other could keep a reader busy for ever.
const MaxAgents = 64

// tree is what the readers of one tree of agents share.
type tree struct {
	folder string // of the first file: no other leaves it
	models func(file, name string) (model.LLM, error)
	shared func(names []string) skill.Source // nil where there is no bus
	agents int                               // read so far
}

func newReader(file string, models func(file, name string) (model.LLM, error)) *reader {
	return &reader{
		file: file, at: map[string]place{}, top: place{1, 1},
		tree: &tree{folder: filepath.Dir(file), models: models, agents: 1}, files: []string{filepath.Base(file)},
	}
}

// subAgents are the elements of sub_agents: each is an agent, or tells where one is.
type subAgents struct{ nodes []ast.Node }

// reference is an element that tells where its agent is.
type reference struct {
	ConfigPath string  `yaml:"config_path"`
	Code       refused `yaml:"code" why:"a file cannot bring code: write the agent out here, or name its file with config_path"`
}

func (r *reader) subAgents(path string, n ast.Node, v reflect.Value) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.wrongType(path, n, "a list")
		return
	}
	for i, element := range list.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		r.at[at] = placeOf(element)
		if !isMapping(element) {
			r.wrongType(at, element, "an agent, or {config_path: FILE}")
			return
		}
	}
	v.Set(reflect.ValueOf(subAgents{list.Values}))
}

// below makes the sub-agents of an agent whose model is llm. Those with faults are left out.
func (r *reader) below(subs subAgents, llm model.LLM) []agent.Agent {
	var all []agent.Agent
	for _, n := range subs.nodes {
		if r.tree.agents++; r.tree.agents > MaxAgents {
			r.fault(placeOf(n), "sub_agents: a file makes %d agents at most, those below it included", MaxAgents)
			return all
		}
		child := &reader{file: r.file, at: map[string]place{}, top: placeOf(n), tree: r.tree, files: r.files}
		body := n
		if isReference(n) {
			body = r.open(n, child)
		}
		if a := child.agent(body, llm); a != nil {
			all = append(all, a)
		}
		r.faults = append(r.faults, child.faults...)
	}
	return all
}

func isReference(n ast.Node) bool {
	return slices.ContainsFunc(entries(n), func(e *ast.MappingValueNode) bool {
		return keyOf(e) == "config_path" || keyOf(e) == "code"
	})
}

// open parses the file that n refers to, as child's. It returns nil after a fault.
func (r *reader) open(n ast.Node, child *reader) ast.Node {
	var ref reference
	before := len(r.faults)
	r.read("sub_agents", n, reflect.ValueOf(&ref).Elem())
	if len(r.faults) > before {
		return nil
	}
	at := r.at[join("sub_agents", "config_path")]
	name := filepath.Join(filepath.Dir(r.files[len(r.files)-1]), filepath.FromSlash(ref.ConfigPath))
	switch {
	case ref.ConfigPath == "" || filepath.IsAbs(filepath.FromSlash(ref.ConfigPath)) || !filepath.IsLocal(name):
		r.fault(at, "config_path %q: it is the path of a file below the folder of the first agent's file, relative to the file it stands in", ref.ConfigPath)
		return nil
	case slices.Contains(r.files, name):
		r.fault(at, "config_path %s leads back to itself: %s", ref.ConfigPath, strings.Join(append(slices.Clip(r.files), name), " -> "))
		return nil
	}
	data, err := r.tree.read(name)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		r.fault(at, "config_path %s cannot be read: %v", ref.ConfigPath, err)
		return nil
	}
	child.file, child.top = filepath.Join(r.tree.folder, name), place{1, 1}
	child.files = append(slices.Clip(r.files), name)
	return child.parse(data)
}

// read is a file's bytes, one more than the limit if there are as many. No link leads out of the folder.
func (t *tree) read(name string) ([]byte, error) {
	root, err := os.OpenRoot(t.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}
