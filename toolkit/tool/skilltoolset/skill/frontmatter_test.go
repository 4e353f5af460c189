package skill_test

import (
	"bufio"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

func parse(text string) (*skill.Frontmatter, string, error) { return skill.ParseBytes([]byte(text)) }

func TestAFrontmatterIsReadHoweverItIsWritten(t *testing.T) {
	want := skill.Frontmatter{Name: "pdf", Description: "Reads forms.\nFills them."}
	for name, c := range map[string]struct {
		text string
		want skill.Frontmatter
		body string
	}{
		"line ends of Unix":        {"---\nname: pdf\ndescription: |-\n  Reads forms.\n  Fills them.\n---\nDo it.\n", want, "Do it.\n"},
		"line ends of Windows":     {"---\r\nname: pdf\r\ndescription: |-\r\n  Reads forms.\r\n  Fills them.\r\n---\r\nDo it.\r\n", want, "Do it.\r\n"},
		"a byte order mark":        {"\uFEFF---\nname: pdf\ndescription: \"Reads forms.\\nFills them.\"\n---\nDo it.\n", want, "Do it.\n"},
		"blanks behind the dashes": {"--- \nname: pdf\ndescription: \"Reads forms.\\nFills them.\"\n---\t\nDo it.\n", want, "Do it.\n"},
		"no end of the last line":  {"---\nname: pdf\ndescription: \"Reads forms.\\nFills them.\"\n---", want, ""},
		"a folded text": {
			"---\nname: pdf\ndescription: >\n  Reads forms,\n  all of them.\n---\n",
			skill.Frontmatter{Name: "pdf", Description: "Reads forms, all of them.\n"}, "",
		},
		"everything": {
			"---\n# ours\nname: pdf\ndescription: 'a: b'\nlicense: MIT\ncompatibility: needs python3\nmetadata:\n  version: 1.0\n  author: us\n  stable: true\nallowed-tools: Bash(git add:*), Read Write\n---\n# Title\n---\nrest",
			skill.Frontmatter{Name: "pdf", Description: "a: b", License: "MIT", Compatibility: "needs python3",
				Metadata: map[string]string{"version": "1.0", "author": "us", "stable": "true"}, AllowedTools: []string{"Bash(git add:*)", "Read", "Write"}},
			"# Title\n---\nrest",
		},
		"tools as a list": {
			"---\nname: pdf\ndescription: x\nlicense:\nallowed-tools:\n  - Bash(a, b)\n  - Read\n---\n",
			skill.Frontmatter{Name: "pdf", Description: "x", AllowedTools: []string{"Bash(a, b)", "Read"}}, "",
		},
		"1024 letters of two bytes": {
			"---\nname: pdf\ndescription: " + strings.Repeat("ä", 1024) + "\n---\n",
			skill.Frontmatter{Name: "pdf", Description: strings.Repeat("ä", 1024)}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fm, body, err := parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*fm, c.want) || body != c.body {
				t.Errorf("got %+v, %q\nwant %+v, %q", *fm, body, c.want, c.body)
			}
		})
	}
}

func TestParseLeavesTheInstructions(t *testing.T) {
	r := bufio.NewReader(strings.NewReader("---\nname: a\ndescription: b\n---\nDo it."))
	if _, err := skill.Parse(r); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(r); string(rest) != "Do it." {
		t.Errorf("%q is left", rest)
	}
}

func TestAFaultOfAFrontmatterHasItsLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                      {"", "line 1: a SKILL.md begins with"},
		"no separator":               {"name: a\n", "line 1: a SKILL.md begins with"},
		"a longer separator":         {"----\nname: a\n----\n", "line 1: a SKILL.md begins with"},
		"no end":                     {"---\nname: a\ndescription: b\n", "has no end"},
		"nothing in it":              {"---\n---\n", "line 2: the frontmatter is empty"},
		"a list":                     {"---\n- a\n---\n", "line 2: the frontmatter is no mapping"},
		"a colon in plain text":      {"---\nname: a\ndescription: Use: when asked\n---\n", "line 3: "},
		"a bracket at its beginning": {"---\nname: a\ndescription: [PDF] reads forms\n---\n", "line 3: "},
		"an unknown key":             {"---\nname: a\ndescription: b\nalowed-tools: c\n---\n", `line 4: unknown key "alowed-tools"; did you mean allowed-tools?`},
		"a key twice":                {"---\nname: a\nname: b\ndescription: c\n---\n", `line 3: key "name" is there twice`},
		"an empty key twice":         {"---\nlicense:\nlicense:\nname: a\ndescription: c\n---\n", `line 3: key "license" is there twice`},
		"no name":                    {"---\ndescription: c\n---\n", "name is missing"},
		"an empty name":              {"---\ndescription: c\nname:\n---\n", "name is empty"},
		"a name in capitals":         {"---\ndescription: c\nname: PDF\n---\n", `line 3: name "PDF": lower-case`},
		"a name with a path":         {"---\ndescription: c\nname: ../a\n---\n", `line 3: name "../a": lower-case`},
		"hyphens in a row":           {"---\ndescription: c\nname: a--b\n---\n", "two hyphens in a row"},
		"a hyphen at the end":        {"---\ndescription: c\nname: a-\n---\n", "begins or ends with a hyphen"},
		"a long name":                {"---\ndescription: c\nname: " + strings.Repeat("a", 65) + "\n---\n", "name has 65 characters, more than 64"},
		"no description":             {"---\nname: a\ndescription: ''\n---\n", "line 3: description is empty"},
		"a long description":         {"---\nname: a\ndescription: " + strings.Repeat("ä", 1025) + "\n---\n", "description has 1025 characters, more than 1024"},
		"a long compatibility":       {"---\nname: a\ndescription: b\ncompatibility: " + strings.Repeat("ä", 501) + "\n---\n", "line 4: compatibility has 501"},
		"a mapping as text":          {"---\nname: a\ndescription: {b: c}\n---\n", "line 3: description is no text"},
		"metadata below metadata":    {"---\nname: a\ndescription: b\nmetadata:\n  x: {y: z}\n---\n", "line 5: metadata.x is no text"},
		"metadata as text":           {"---\nname: a\ndescription: b\nmetadata: x\n---\n", "line 4: metadata is no mapping"},
		"hidden text":                {"---\nname: a\ndescription: \"b\\u202Ec\"\n---\n", "line 3: description holds U+202E"},
		"an anchor":                  {"---\nname: &a a\ndescription: *a\n---\n", "anchors, aliases and tags"},
		"a tag":                      {"---\nname: a\ndescription: !!binary aGk=\n---\n", "anchors, aliases and tags"},
		"a merge key":                {"---\nname: a\ndescription: b\n<<: {license: x}\n---\n", "merge keys"},
		"a second document":          {"---\nname: a\ndescription: b\n--- # more\nname: c\n---\n", "line "},
		"not UTF-8":                  {"---\nname: a\ndescription: \xff\n---\n", "is not UTF-8"},
		"instructions not UTF-8":     {"---\nname: a\ndescription: b\n---\n\xff\xfe", "instructions are not UTF-8"},
		"UTF-16":                     {"\xff\xfe-\x00-\x00-\x00\n\x00", "line 1: a SKILL.md begins with"},
		"large":                      {"---\nname: a\ndescription: b\nmetadata:\n" + strings.Repeat("  x: y\n", 4000) + "---\n", "more than 16384 bytes"},
		"one endless line":           {"---\nname: " + strings.Repeat("a", 1<<20), "more than 16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			fm, _, err := parse(c.text)
			if !errors.Is(err, skill.ErrInvalidFrontmatter) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want an error with %q", fm, err, c.want)
			}
		})
	}
}

func TestLongInstructionsAreTooLarge(t *testing.T) {
	if _, _, err := parse("---\nname: a\ndescription: b\n---\n" + strings.Repeat("x", skill.MaxInstructions+1)); !errors.Is(err, skill.ErrTooLarge) {
		t.Error(err)
	}
}

// What follows would cost a parser that trusts its input seconds or gigabytes.
func TestBombsAreRefusedAtOnce(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for _, c := range "bcdefghi" {
		before := string(c - 1)
		laughs += string(c) + ": &" + string(c) + " [*" + strings.TrimSuffix(strings.Repeat(before+",*", 9), ",*") + "]\n"
	}
	for name, yaml := range map[string]string{
		"a billion laughs": laughs,
		"brackets":         "name: " + strings.Repeat("[", 15000),
		"braces":           "name: " + strings.Repeat("{a: ", 3000),
		"dashes":           strings.Repeat("- ", 8000) + "a",
		"question marks":   strings.Repeat("? ", 8000) + "a",
		"colons":           "name" + strings.Repeat(": ", 8000),
		"deep indentation": func() string {
			var b strings.Builder
			for i := range 150 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(),
		"many keys":      strings.Repeat("a: b\n", 3000),
		"a list of many": "allowed-tools: [" + strings.Repeat("a,", 7000) + "a]",
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			if _, _, err := parse("---\n" + yaml + "\n---\n"); !errors.Is(err, skill.ErrInvalidFrontmatter) {
				t.Errorf("it is read, or fails with %v", err)
			}
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}

func TestWhatIsBuiltIsReadAgain(t *testing.T) {
	for _, fm := range []skill.Frontmatter{
		{Name: "a", Description: "plain text, as most is"},
		{Name: "123", Description: "no"},
		{Name: "a-b", Description: "- [x]: \"quoted\" # no comment\n\n  indented <b>&</b> \\ ä 😀\ttab"},
		{Name: "a", Description: "b", License: "1.0", Compatibility: "null", Metadata: map[string]string{"version": "1.0", "": "x", "a: b": "~", "on": ""},
			AllowedTools: []string{"Bash(git add:*)", "true"}},
	} {
		text, err := skill.Build(&fm, "# Steps\n\n1. Do it.\n")
		if err != nil {
			t.Errorf("%+v: %v", fm, err)
			continue
		}
		again, body, err := skill.ParseBytes(text)
		if err != nil || !reflect.DeepEqual(*again, fm) || body != "# Steps\n\n1. Do it.\n" {
			t.Errorf("%s\ngives %+v, %q, %v\nwant %+v", text, again, body, err, fm)
		}
	}
}

func TestNothingIllegalIsBuilt(t *testing.T) {
	for _, fm := range []*skill.Frontmatter{nil, {}, {Name: "A", Description: "b"}, {Name: "a"}, {Name: "a", Description: "b\u200bc"}} {
		if text, err := skill.Build(fm, ""); !errors.Is(err, skill.ErrInvalidFrontmatter) {
			t.Errorf("%+v is built: %s, %v", fm, text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: b\n---\nDo it.\n"))
	f.Add([]byte("\uFEFF---\r\nname: a\r\ndescription: |\r\n  b\r\n---\r\n"))
	f.Add([]byte("---\nname: a\ndescription: >-\n  b\n\n  c\nmetadata: {v: 1.0, w: ~}\nallowed-tools: [A(b c), d]\n---"))
	f.Add([]byte("---\na: &a [*a]\n? b\n: c\n<<: *a\n---\n"))
	f.Add([]byte("---\n- - - [[{\n---\n"))
	f.Add([]byte("---\n\"name\": 'x'\n!!str description: |2\n   b\n...\n---\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		fm, body, err := skill.ParseBytes(content)
		if err != nil {
			if !errors.Is(err, skill.ErrInvalidFrontmatter) && !errors.Is(err, skill.ErrTooLarge) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		if err := skill.Validate(fm); err != nil {
			t.Fatalf("what is read is not valid: %v", err)
		}
		text, err := skill.Build(fm, body)
		if err != nil {
			return // control characters under metadata have no other form
		}
		again, rest, err := skill.ParseBytes(text)
		if err != nil || again.Name != fm.Name || again.Description != fm.Description || rest != body {
			t.Fatalf("%q\nis built as %q\nand read as %+v, %q, %v", content, text, again, rest, err)
		}
	})
}
