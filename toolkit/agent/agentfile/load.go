// Package agentfile reads agents from files in the format of ADK's agent config (root_agent.yaml), strictly: a file is
// either understood whole or refused with all of its faults, each with file, line and column. LlmAgent is the one class
// that this version knows. Tools are pools, by name, and exit_loop, which needs none; what only this fabric has is under the
// key toolfabric:
//
//	name: helper
//	model: gemini-2.5-flash
//	instruction: Answer with the tools you have.
//	tools:
//	  - name: word_count
//	toolfabric:
//	  limits: {model_calls: 20, calls_per_turn: 8, wall_time: 5m}
//
// An agent has skills, see package skilltoolset, from a folder, whose path is relative to the file, and from those that all
// coordinators share. The tools for them have the agent's name in front: helper_load_skill. Scripts of skills run by the
// interpreters that are named, and only by those; a person is asked before each run unless confirm_scripts says otherwise:
//
//	toolfabric:
//	  skills:
//	    folder: skills
//	    shared: [pdf-forms]           # or ["*"] for all
//	    scripts: {.py: [python3], .sh: [sh]}
//	    confirm_scripts: true
//
// Agents below an agent are written out in its list sub_agents, or have files of their own in its folder, which
// {config_path: FILE} names, relative to the file that it stands in. They have the model of the agent above unless they name
// another one:
//
//	sub_agents:
//	  - {name: billing, description: Answers about bills., instruction: Be exact., disallow_transfer_to_peers: true}
//	  - {config_path: agents/shipping.yaml}
package agentfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// MaxFile is the size limit of an agent file in bytes. The YAML parser's time grows faster than its input.
const MaxFile = 64 << 10

const rootFile = "root_agent.yaml"

// Load reads the agents of dir: each dir/<folder>/root_agent.yaml and each dir/<file>.yaml. The key is the agent's name. A
// file of dir that another one names as a sub-agent's is an agent of its own as well.
// models finds a model by the name that stands in a file. The error is Errors, or an *protocol.Error of code usage when dir cannot be
// read or has no agent.
func Load(dir string, models func(file, name string) (model.LLM, error), options ...Option) (map[string]*llmagent.LLMAgent, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the folder of agents %s cannot be read", dir)
	}
	agents := map[string]*llmagent.LLMAgent{}
	from := map[string]string{}
	var faults Errors
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
			continue
		case filepath.Ext(entry.Name()) == ".yaml":
		case isDir(file):
			file = filepath.Join(file, rootFile)
		default:
			continue
		}
		data, err := read(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			faults = append(faults, &Error{File: file, Line: 1, Column: 1, Message: err.Error()})
			continue
		}
		a, err := ParseFile(file, data, models, options...)
		if err != nil {
			found, _ := errors.AsType[Errors](err)
			faults = append(faults, found...)
			continue
		}
		if first, twice := from[a.Name()]; twice {
			faults = append(faults, &Error{File: file, Line: 1, Column: 1, Message: fmt.Sprintf("agent %s is defined in %s before", a.Name(), first)})
			continue
		}
		agents[a.Name()], from[a.Name()] = a, file
	}
	if len(faults) > 0 {
		return nil, faults.sorted()
	}
	if len(agents) == 0 {
		return nil, protocol.Errorf(protocol.CodeUsage, "no agent in %s: an agent is a file <name>.yaml or a folder with %s", dir, rootFile)
	}
	return agents, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// read reads one byte more than the limit, so that ParseFile sees it exceeded.
func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}
