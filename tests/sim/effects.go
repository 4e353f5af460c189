package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// effects compares the effect ledger with what was asked for and what was told.
func (c *checker) effects() {
	type round struct {
		call string
		n    int
	}
	sent := map[round]int{}
	for _, env := range c.envelopes {
		sent[round{env.Call, env.Round}]++
	}
	for _, id := range slices.Sorted(maps.Keys(c.standings)) {
		s := c.standings[id]
		for n := range s.stages {
			starts := slices.DeleteFunc(slices.Clone(c.starts[id]), func(x Started) bool { return x.Round != n })
			for _, x := range starts {
				if x.Tool != s.Tool || !sameJSON(x.Args, s.stages[n].args) {
					c.add("I13", "the effect of call %s was started with other arguments than its turn's", id)
				}
			}
			if s.effect(n) != protocol.EffectAtMostOnce {
				if most := c.h.Deliveries * sent[round{id, n}]; len(starts) > most {
					c.add("I13", "the effect of call %s was started %d times, more than %d", id, len(starts), most)
				}
				continue
			}
			if len(starts) > 1 {
				c.add("I12", "the effect of at_most_once call %s was started %d times", id, len(starts))
			}
			c.claimed(s, n, starts)
		}
	}
}

// claimed compares the starts of an at_most_once call with its claim, and with what its answer says.
func (c *checker) claimed(s *standing, round int, starts []Started) {
	at, ok := c.firsts[c.h.Names.ClaimSubject(s.Tool, s.ID, round)]
	var claim protocol.Claim // unreadable is nobody's
	if ok {
		_ = json.Unmarshal(c.h.Records[at].Data, &claim)
	}
	for _, x := range starts {
		if claim.Coordinator != "" || !ok || at >= x.At {
			c.add("I14", "the effect of call %s was started without its worker's claim", s.ID)
		}
	}
	stored, ok := c.firsts[c.mailbox(s, round)]
	var r protocol.Result
	if ok && json.Unmarshal(c.h.Records[stored].Data, &r) == nil && strings.Contains(string(r.Value), "not executed") && len(starts) > 0 {
		c.add("I14", "the effect of call %s was started, its result says that it was not executed", s.ID)
	}
}

// models compares the turns with the ledger of models: each one was answered like that, once.
func (c *checker) models() {
	answers := map[string]string{}
	for _, a := range c.h.Asked {
		answers[a.Answer] = a.Session
		if a.Wrong != "" {
			c.add("I10", "session %s: a model was asked wrongly: %s", a.Session, a.Wrong)
		}
	}
	used := map[string]uint64{}
	for _, j := range c.journals() {
		for _, ev := range j.events {
			if ev.Turn == nil || len(ev.Turn.Content) == 0 {
				continue
			}
			answer := AnswerID(ev.Turn.Content)
			if session, ok := answers[answer]; !ok || session != j.name {
				c.add("I27", "log %s: turn %d is not what a model answered", j.name, ev.seq)
			} else if first, ok := used[answer]; ok {
				c.add("I27", "log %s: turn %d has the answer of turn %d", j.name, ev.seq, first)
			}
			used[answer] = ev.seq
		}
	}
}

// AnswerID finds the mark by which the models of tests tell their answers apart; empty is none.
func AnswerID(content []byte) string {
	_, rest, ok := strings.Cut(string(content), "answer-")
	if !ok {
		return ""
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r == '"' || r == ' ' || r == '_' })
	if end < 0 {
		end = len(rest)
	}
	return "answer-" + rest[:end]
}
