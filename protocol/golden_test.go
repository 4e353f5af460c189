package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files of the version this build writes")

// sums lists the golden files that other builds may have written, in the format of sha256sum. -update leaves it alone: a
// file it lists is changed by nobody who does not also change this list by hand.
const sums = "testdata/released.sha256"

// golden is one message as it stands on the wire, in testdata/v<version>/<name>.json with a line feed behind it.
type golden struct {
	name  string
	value any
	read  func(data []byte) (any, error)
}

func message[T any](name string, value T, decode func([]byte) (T, error)) golden {
	return golden{name, value, func(data []byte) (any, error) { return decode(data) }}
}

// strict is Decode for the messages that have no decoder of their own.
func strict[T any](data []byte) (T, error) {
	var v T
	return v, Decode(data, &v, MessageLimits)
}

func path(name string) string { return fmt.Sprintf("testdata/v%d/%s.json", Version, name) }

func TestEveryMessageStandsOnTheWireAsWritten(t *testing.T) {
	var names []string
	for _, g := range goldens {
		names = append(names, path(g.name))
		t.Run(g.name, func(t *testing.T) {
			wrote, err := Encode(g.value)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(path(g.name), append(bytes.Clone(wrote), '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(path(g.name))
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.TrimSuffix(data, []byte("\n"))
			if !bytes.Equal(wrote, data) {
				t.Errorf("it is written as\n%s\nand the golden file has\n%s", wrote, data)
			}
			read, err := g.read(data)
			if err != nil || !reflect.DeepEqual(read, g.value) {
				t.Errorf("the golden file is read as\n%+v, %v\nwant\n%+v", read, err, g.value)
			}
		})
	}
	files, err := filepath.Glob(path("*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if !slices.Equal(files, names) {
		t.Errorf("the golden files are %v, want %v", files, names)
	}
}

func TestReadersLeaveOutWhatALaterVersionAdds(t *testing.T) {
	for _, g := range goldens {
		data, err := Encode(g.value)
		if err != nil {
			t.Fatal(err)
		}
		later := slices.Concat([]byte(`{"added_later":[{"x":1}],`), data[1:])
		if read, err := g.read(later); err != nil || !reflect.DeepEqual(read, g.value) {
			t.Errorf("%s with another key is read as %+v, %v", g.name, read, err)
		}
	}
}

// TestReleasedGoldenFilesStayAsTheyAre fails when a message of a version that is out in the world would be read or written
// in another way. A change that others must not see needs a new version; a file that was never released may be listed
// anew: sha256sum v*/*.json > released.sha256.
func TestReleasedGoldenFilesStayAsTheyAre(t *testing.T) {
	list, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("%s: %q is no line of sha256sum", sums, line)
		}
		listed[name] = true
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Errorf("a released golden file is gone: %v", err)
			continue
		}
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s is not what was released", name)
		}
	}
	files, err := filepath.Glob("testdata/v*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name, _ := filepath.Rel("testdata", f); !listed[filepath.ToSlash(name)] {
			t.Errorf("%s is not listed in %s", name, sums)
		}
	}
}

func TestGoldenFilesShowEveryField(t *testing.T) {
	shown := map[string]bool{}
	for _, g := range goldens {
		show(shown, reflect.ValueOf(g.value))
	}
	seen := map[reflect.Type]bool{}
	for _, g := range goldens {
		for _, field := range fields(reflect.TypeOf(g.value), seen) {
			if !shown[field] {
				t.Errorf("no golden file shows %s", field)
			}
		}
	}
}

// show notes the fields that have a value somewhere in v.
func show(shown map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			show(shown, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			show(shown, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				shown[v.Type().Name()+"."+v.Type().Field(i).Name] = true
				show(shown, f)
			}
		}
	}
}

// fields lists the fields of t and of what it is made of.
func fields(t reflect.Type, seen map[reflect.Type]bool) (all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	for i := range t.NumField() {
		all = append(all, t.Name()+"."+t.Field(i).Name)
		all = append(all, fields(t.Field(i).Type, seen)...)
	}
	return all
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }
