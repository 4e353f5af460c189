package view

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

type recording struct {
	App     string          `json:"app"`
	Log     []Entry         `json:"log"`
	Results map[string]Mail `json:"results"`
}

func recordings(t *testing.T) map[string]recording {
	t.Helper()
	files, err := filepath.Glob("testdata/*.log.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	all := map[string]recording{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var r recording
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[strings.TrimSuffix(f, ".log.json")] = r
	}
	return all
}

func golden(t *testing.T, file string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s", file, got)
	}
}

func TestEventsAndTraceOfRecordings(t *testing.T) {
	for name, r := range recordings(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			golden(t, name+".events.json", Events(r.Log, nil))
			golden(t, name+".trace.json", Trace(r.App, r.Log, r.Results))
		})
	}
}

func TestEventsOfABeginningAreTheBeginningOfTheEvents(t *testing.T) {
	for name, r := range recordings(t) {
		whole := Events(r.Log, nil)
		for k := range r.Log {
			part := Events(r.Log[:k], nil)
			if len(part) > len(whole) || len(part) > 0 && !reflect.DeepEqual(part, whole[:len(part)]) {
				t.Errorf("%s: the events of the first %d entries are not a beginning", name, k)
			}
		}
	}
}

func TestEventIDsAreUnique(t *testing.T) {
	for name, r := range recordings(t) {
		seen := map[string]bool{}
		for _, ev := range Events(r.Log, nil) {
			if seen[ev.ID] {
				t.Errorf("%s: id %s twice", name, ev.ID)
			}
			seen[ev.ID] = true
		}
	}
}

func TestEventsKeepEveryDigit(t *testing.T) {
	data, err := json.Marshal(Events(recordings(t)["testdata/parallel"].Log, nil))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, []byte("12345678901234567890")); n != 2 {
		t.Errorf("the long number appears %d times, want 2 in %s", n, data)
	}
}
