package session

import (
	"iter"
	"slices"
	"sync"
	"time"
)

// found is a Session that was read.
type found struct {
	Recorded
	app string
	mu  sync.Mutex // guards Recorded.State
}

func (f *found) ID() string                { return f.Recorded.ID }
func (f *found) AppName() string           { return f.app }
func (f *found) UserID() string            { return f.User }
func (f *found) State() State              { return (*copied)(f) }
func (f *found) Events() Events            { return events(f.Recorded.Events) }
func (f *found) LastUpdateTime() time.Time { return f.Updated }

// copied is the state of a Session that was read.
type copied found

func (c *copied) Get(key string) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.Recorded.State[key]; ok {
		return v, nil
	}
	return nil, ErrStateKeyNotExist
}

func (c *copied) Set(key string, value any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if value == nil {
		delete(c.Recorded.State, key)
		return nil
	}
	if c.Recorded.State == nil {
		c.Recorded.State = map[string]any{}
	}
	c.Recorded.State[key] = value
	return nil
}

// All yields the keys as they were when it was called, in order.
func (c *copied) All() iter.Seq2[string, any] {
	c.mu.Lock()
	defer c.mu.Unlock()
	type pair struct {
		key   string
		value any
	}
	var all []pair
	for k, v := range c.Recorded.State {
		all = append(all, pair{k, v})
	}
	slices.SortFunc(all, func(a, b pair) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	return func(yield func(string, any) bool) {
		for _, p := range all {
			if !yield(p.key, p.value) {
				return
			}
		}
	}
}

type events []*Event

func (e events) All() iter.Seq[*Event] { return slices.Values(e) }
func (e events) Len() int              { return len(e) }

// At returns nil when there is no such event.
func (e events) At(i int) *Event {
	if i < 0 || i >= len(e) {
		return nil
	}
	return e[i]
}
