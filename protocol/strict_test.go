package protocol

import (
	"strings"
	"testing"
)

func TestDecodeRefusesWhatParsersDisagreeOn(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for name, tc := range map[string]struct{ doc, want string }{
		"not JSON":             {`{"v":1,`, "invalid JSON at byte"},
		"two documents":        {`{"v":1} {"v":1}`, "invalid JSON at byte"},
		"duplicate key":        {`{"v":1,"id":"a","id":"b"}`, `duplicate key "id" at /id`},
		"escaped duplicate":    {`{"v":1,"id":"a","\u0069d":"b"}`, `duplicate key "id" at /id`},
		"duplicate in raw":     {`{"v":1,"call":{"tool":"x","args":{"a":1,"a":2}}}`, `duplicate key "a" at /call/args/a`},
		"case variant":         {`{"v":1,"ID":"a"}`, `key "ID" is not "id" at /ID`},
		"Kelvin sign":          {`{"v":1,"` + "\u212aind" + `":"message"}`, `is not "kind"`},
		"nested case variant":  {`{"v":1,"call":{"Tool":"x"}}`, `key "Tool" is not "tool" at /call/Tool`},
		"invalid UTF-8":        {"{\"v\":1,\"id\":\"\xff\"}", "invalid UTF-8 at byte 13"},
		"lone surrogate":       {`{"v":1,"id":"a\ud83d b"}`, "lone surrogate"},
		"surrogate key":        {`{"v":1,"\udc00":1}`, "lone surrogate"},
		"zero in a key":        {`{"v":1,"id\u0000":1}`, "U+0000"},
		"low surrogate":        {`{"v":1,"id":"\ude00"}`, "lone surrogate"},
		"too deep":             {`{"v":1,"content":` + deep + `}`, "nested deeper than 64"},
		"long number":          {`{"v":1,"content":{"n":` + strings.Repeat("1", 41) + `}}`, "a number of 41 characters"},
		"number out of range":  {`{"v":1,"content":{"n":1e999}}`, "number out of range: 1e999 at /content/n"},
		"wrong type":           {`{"v":"1"}`, "a JSON string cannot stand at /v, want int"},
		"unsupported version":  {`{"v":9,"id":"a","kind":"delete"}`, "message version 9 is not supported"},
		"unknown kind":         {`{"v":1,"id":"a","kind":"shout"}`, `unknown kind "shout" at /kind`},
		"id with a separator":  {`{"v":1,"id":"a.b","kind":"delete"}`, `"a.b"`},
		"call without args":    {`{"v":1,"id":"a","kind":"call","call":{"tool":"x"}}`, "args is missing at /call"},
		"tool name with a dot": {`{"v":1,"id":"a","kind":"call","call":{"tool":"x.y","args":{}}}`, `try "x_y"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeInput([]byte(tc.doc))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestDecodeKeepsExactBytes(t *testing.T) {
	doc := `{"v":1,"id":"a","kind":"call","later":true,"call":{"tool":"x","args":{"n":9007199254740993,"f":1e2, "s":"\ud83d\ude00"}}}`
	in, err := DecodeInput([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"n":9007199254740993,"f":1e2, "s":"\ud83d\ude00"}`; string(in.Call.Args) != want {
		t.Fatalf("args are %s, want %s", in.Call.Args, want)
	}
}

func TestDecodeNamesTheSizeLimit(t *testing.T) {
	doc := `{"v":1,"id":"` + strings.Repeat("a", MessageLimits.Size) + `"}`
	_, err := DecodeInput([]byte(doc))
	if CodeOf(err) != CodeTooLarge {
		t.Fatalf("got %v, want code too_large", err)
	}
}

func TestEveryCodeHasANumberAndAnActor(t *testing.T) {
	seen := map[int]Code{}
	for c, row := range codes {
		if row.number == 0 || row.actor == "" || seen[row.number] != "" {
			t.Errorf("%s: number %d, actor %q, shared with %q", c, row.number, row.actor, seen[row.number])
		}
		seen[row.number] = c
	}
}
