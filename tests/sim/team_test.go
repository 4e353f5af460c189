package sim_test

import (
	"strings"
	"sync"

	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

// What the agents of a team say before all else: payer, whom users talk to first, and teller below it.
const (
	payerTalk = `
  - {user: '^hand', turn: 0, calls: [{tool: transfer_to_agent, args: {agent_name: teller}}]}
  - {user: '^there', turn: 0, calls: [{tool: pay, args: {n: 21}}, {tool: transfer_to_agent, args: {agent_name: teller}}, {tool: exit_loop}]}
  - {user: '^leave', turn: 0, calls: [{tool: look, args: {n: 22}}, {tool: exit_loop}]}
  - {user: '^exit', turn: 0, calls: [{tool: exit_loop}]}
  - {user: '^sent', turn: 0, calls: [{tool: look, args: {n: 26}}, {tool: pay, args: {n: 27}}]}
  - {user: '^quiet', turn: 0, calls: [{tool: pay, args: {n: 28}}, {tool: look, args: {n: 29}}]}
  - {user: '^astray', turn: 0, calls: [{tool: transfer_to_agent, args: {agent_name: nobody}}, {tool: look, args: {n: 23}}]}
`
	tellerTalk = `
  - {user: '^hand', turn: 0, calls: [{tool: pay, args: {n: 24}}]}
  - {user: '^hand', turn: 1, calls: [{tool: transfer_to_agent, args: {agent_name: payer}}]}
  - {user: '^there', turn: 0, calls: [{tool: pay, args: {n: 25}}, {tool: exit_loop}]}
  - {user: '^leave', turn: 0, calls: [{tool: exit_loop}]}
  - {user: '^exit', turn: 0, calls: [{tool: transfer_to_agent, args: {agent_name: payer}}]}
`
)

var teamTexts = []string{"hand", "hand", "there", "leave", "exit", "astray", "sent", "quiet"}

// What a tool is asked for that hands the run over, or ends it.
const handsOver, endsRun = 26, 28

// scriptOf is what an agent's model says; scripts do not change once read.
func scriptOf(agent string, waits, team bool) *scripted.Script {
	scripts.Lock()
	defer scripts.Unlock()
	which := scriptKey{agent, waits, team}
	if s := scripts.read[which]; s != nil {
		return s
	}
	_, rules, _ := strings.Cut(talk, "rules:\n")
	if waits {
		_, more, _ := strings.Cut(waitingTalk, "rules:\n")
		rules = more + rules
	}
	switch {
	case agent == "teller":
		rules = tellerTalk + rules
	case team:
		rules = payerTalk + rules
	}
	s, err := scripted.Parse([]byte("rules:\n" + rules))
	if err != nil {
		panic(err)
	}
	scripts.read[which] = s
	return s
}

type scriptKey struct {
	agent       string
	waits, team bool
}

var scripts = struct {
	sync.Mutex
	read map[scriptKey]*scripted.Script
}{read: map[scriptKey]*scripted.Script{}}
