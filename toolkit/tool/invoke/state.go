package invoke

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/toolkit/session"
)

// state is the session's state when the call was allowed, under what the tool has set since. Numbers are float64 when
// that loses no digit, json.Number otherwise.
type state struct {
	snapshot map[string]json.RawMessage
	mu       sync.Mutex
	actions  *session.EventActions // whose StateDelta mu guards
}

func (s *state) Get(key string) (any, error) {
	s.mu.Lock()
	v, ok := s.actions.StateDelta[key]
	s.mu.Unlock()
	if ok {
		if v == nil {
			return nil, fmt.Errorf("%w: %s", session.ErrStateKeyNotExist, key)
		}
		return v, nil
	}
	raw, ok := s.snapshot[key]
	if !ok || string(raw) == "null" {
		return nil, fmt.Errorf("%w: %s", session.ErrStateKeyNotExist, key)
	}
	return decodeAny(raw)
}

// All goes over the keys in order.
func (s *state) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		s.mu.Lock()
		keys := slices.Collect(maps.Keys(s.snapshot))
		for key := range s.actions.StateDelta {
			keys = append(keys, key)
		}
		s.mu.Unlock()
		slices.Sort(keys)
		for _, key := range slices.Compact(keys) {
			v, err := s.Get(key)
			if err == nil && !yield(key, v) {
				return
			}
		}
	}
}

func (s *state) Set(key string, value any) error {
	if key == "" || !utf8.ValidString(key) {
		return fmt.Errorf("state key %q: a key is text and not empty", key)
	}
	if _, err := Encode(value); err != nil {
		return fmt.Errorf("state key %q: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.actions.StateDelta == nil {
		s.actions.StateDelta = map[string]any{}
	}
	s.actions.StateDelta[key] = value
	return nil
}
