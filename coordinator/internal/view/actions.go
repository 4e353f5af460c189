package view

import (
	"maps"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// merge adds one call's actions: flags are or-ed, the last transfer wins, objects in the state are merged key by key.
func merge(into *session.EventActions, a *protocol.Actions) {
	if a == nil {
		return
	}
	into.SkipSummarization = into.SkipSummarization || a.SkipSummarization
	into.Escalate = into.Escalate || a.Escalate
	if a.TransferToAgent != "" {
		into.TransferToAgent = a.TransferToAgent
	}
	if len(a.StateDelta) > 0 {
		if into.StateDelta == nil {
			into.StateDelta = map[string]any{}
		}
		mergeState(into.StateDelta, values(a.StateDelta))
	}
}

func mergeState(into, from map[string]any) {
	for k, v := range from {
		old, isMap := into[k].(map[string]any)
		add, alsoMap := v.(map[string]any)
		if isMap && alsoMap {
			old = maps.Clone(old)
			mergeState(old, add)
			v = old
		}
		into[k] = v
	}
}
