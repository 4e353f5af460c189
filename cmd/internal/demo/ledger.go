package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// Effect is a line of the ledger: something a tool has done to the world, under the key of its call.
type Effect struct {
	Key     string `json:"key"`
	Path    string `json:"path"`
	Worker  string `json:"worker"`
	Attempt int    `json:"attempt"`
}

// ledger is a file of effects that is only appended to. Each line is one write, so that processes may share it.
type ledger string

// enter appends e unless its key is there: what an idempotent tool does with its key.
func (l ledger) enter(e Effect) error {
	there, err := l.read()
	if err != nil {
		return err
	}
	for _, old := range there {
		if old.Key == e.Key {
			return nil
		}
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(string(l), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// read returns all effects, none when there is no file yet.
func (l ledger) read() ([]Effect, error) {
	text, err := os.ReadFile(string(l))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var effects []Effect
	for line := range bytes.Lines(text) {
		var e Effect
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		effects = append(effects, e)
	}
	return effects, nil
}
