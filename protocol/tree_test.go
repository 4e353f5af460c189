package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
)

var treeDocuments = []string{
	`{}`, `[]`, `null`, `true`, `false`, `""`, `0`, ` -1.5e+3 `, `{"a":1}`, `{"a":{"b":[1,"x",null,true,false,{}]},"c":""}`,
	`{"a":1,"a":{"b":2}}`, "\t[ 1 , 2 ]\n", `"\u00e9\n\"\\\/"`, `"\ud83d\ude00 \ud800"`, `"é"`, "\"\xff\"", "{\"\xff\":1}", `{"\u0061":1}`,
	`{"k,:":[",",":"]}`, `"a`, `{`, `[1,]`, `1 2`, `{"a":1}}`, ``, ` `, `nul`, "\"\n\"", `01`,
}

func exactTree(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more")
	}
	return v, nil
}

func checkTree(t *testing.T, data []byte) {
	t.Helper()
	want, wantErr := exactTree(data)
	got, err := Tree(data)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: error %v, encoding/json has %v", data, err, wantErr)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: %#v, encoding/json has %#v", data, got, want)
	}
}

func TestTreeReadsWhatEncodingJSONReads(t *testing.T) {
	for _, doc := range treeDocuments {
		checkTree(t, []byte(doc))
	}
}

func FuzzTree(f *testing.F) {
	for _, doc := range treeDocuments {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkTree(t, data) })
}
