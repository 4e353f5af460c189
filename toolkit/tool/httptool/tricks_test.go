package httptool_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

// tricks are values that try to be more than a value.
var tricks = []string{
	"..", ".", "../admin", "..\\admin", "/admin", "//evil.test/", "\\\\evil.test\\", "a/b", "a\\b", "a/../admin", "./a",
	"%2e%2e", "%2E%2E%2Fadmin", "..%2fadmin", "..%5cadmin", "%2fadmin", "%252e%252e%252fadmin", "%25252e%25252e", "%2e", ".%2e", "%2e.",
	"..;", "..;/admin", "..;x=y", ".;a", "%2e%2e%3b", " ..", ".. ", "\t..",
	"..\x00", "a\x00b", "a%00b", "a\r\nX-Admin: 1", "a%0d%0aX-Admin:%201", "a\nb", "a b", "a\u2028b",
	"@evil.test", "user:pass@evil.test", "evil.test:80", ":8080", "http://evil.test/", "https://127.0.0.1/", "javascript:alert(1)", "//", "///", "",
	"a?admin=1", "a#fragment", "#", "?", "&admin=1", "a=b&c=d", "a;b", "a%3Fadmin=1", "a%23b", "%", "%zz", "%%", "100%",
	"\uff0e\uff0e\uff0fadmin", "\uff0e\uff0e", "\u2025", "\u2024\u2024", "\uff0fadmin", "\uff3cadmin", "\uff05\uff12e", "\u2215admin", "\u2044admin",
	"\u202e..", "\u200b..", "[::1]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "{name}", "${env:HOME}", "${file:/etc/passwd}", "{{7*7}}",
	"..\u00a0", "a,b", "a|b", "a^b", "a`b", "a\"b", "a<b>", "~", "-", "_", "$", "*", "(", "é", "日本", "😀", strings.Repeat("a", 20000), strings.Repeat("%25", 200) + "2e",
}

// Each trick ends in a refusal, or in one request to the host, path and query that were meant, in which the value is a value.
func TestNoValueLeavesItsPlace(t *testing.T) {
	s := record(t, nil)
	place := map[string]struct {
		url  string
		read func(u *url.URL) (before, value string) // what stands around the value, and the value
	}{
		"a segment": {"/v1/{x}/info", func(u *url.URL) (string, string) {
			parts := strings.Split(u.EscapedPath(), "/")
			if len(parts) != 4 || u.RawQuery != "" {
				return u.RequestURI(), ""
			}
			v, _ := url.PathUnescape(parts[2])
			return parts[1] + "/" + parts[3], v
		}},
		"the last segment": {"/v1/info/{x}", func(u *url.URL) (string, string) {
			parts := strings.Split(u.EscapedPath(), "/")
			if len(parts) != 4 || u.RawQuery != "" {
				return u.RequestURI(), ""
			}
			v, _ := url.PathUnescape(parts[3])
			return parts[1] + "/" + parts[2], v
		}},
		"a part of a segment": {"/v1/.{x}/info", func(u *url.URL) (string, string) {
			parts := strings.Split(u.EscapedPath(), "/")
			if len(parts) != 4 || u.RawQuery != "" || !strings.HasPrefix(parts[2], ".") {
				return u.RequestURI(), ""
			}
			v, _ := url.PathUnescape(parts[2][1:])
			return parts[1] + "/" + parts[3], v
		}},
		"the query": {"/v1/info?x={x}&y=1", func(u *url.URL) (string, string) {
			q, err := url.ParseQuery(u.RawQuery)
			if err != nil || len(q) != 2 || len(q["x"]) != 1 || q.Get("y") != "1" {
				return u.RequestURI(), ""
			}
			return strings.Trim(u.EscapedPath(), "/"), q.Get("x")
		}},
	}
	refused := 0
	for name, p := range place {
		ht := made(t, httptool.Config{URL: s.URL + p.url})
		for _, trick := range tricks {
			args, err := json.Marshal(map[string]string{"x": trick})
			if err != nil {
				t.Fatal(err)
			}
			before := len(s.got())
			r, err := run(t, t.Context(), ht, string(args))
			if err != nil {
				t.Fatalf("%s, %q: %v", name, trick, err)
			}
			got := s.got()[before:]
			if len(got) == 0 {
				refused++
				if !strings.Contains(string(r.Value), `"error"`) {
					t.Errorf("%s, %q: nothing was sent, and the answer is %s", name, trick, r.Value)
				}
				continue
			}
			u, err := url.ParseRequestURI(strings.TrimPrefix(got[0].line, "GET "))
			if err != nil || len(got) != 1 {
				t.Errorf("%s, %q: %+v", name, trick, got)
				continue
			}
			around, value := p.read(u)
			if around != "v1/info" || value != strings.ToValidUTF8(trick, "\uFFFD") {
				t.Errorf("%s, %q: got %s", name, trick, got[0].line)
			}
			if _, there := got[0].header["X-Admin"]; there {
				t.Errorf("%s, %q: a header came of it", name, trick)
			}
			for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
				plain, _ := url.PathUnescape(segment)
				if twice, err := url.PathUnescape(plain); plain == ".." || plain == "." || err == nil && twice != plain {
					t.Errorf("%s, %q: went out as %s", name, trick, got[0].line)
				}
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d tricks were refused", refused)
	}
}

// Every URL that is no endpoint, or that is read in two ways, is refused when the tool is made.
func TestURLsThatAreRefusedAtOnce(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"", "is no URL"}, {"example.com/x", "is no URL"}, {"ftp://example.com/", "is no URL"}, {"file:///etc/passwd", "is no URL"}, {"ftp://user:pass@example.com/", "is no URL"}, {"gopher://example.com/", "is no URL"},
		{"HTTP://example.com", "is no URL"}, {"http://", "no host"}, {"http:///x", "no host"}, {"http://:80/", "host is empty"},
		{"http://user:pass@example.com/", "user or a password"}, {"http://example.com@evil.test/", "user or a password"}, {"http://{host}/", "are fixed"},
		{"http://example.com:{port}/", "are fixed"}, {"http://a.{zone}.example.com/", "are fixed"}, {"http://${env:HOST}/", "are fixed"},
		{"http://example.com/x#y", "fragment"}, {"http://example.com/../x", "leads elsewhere"}, {"http://example.com/./x", "leads elsewhere"}, {"http://example.com/%2e%2e/x", "leads elsewhere"},
		{"http://example.com/a b", "stands in no URL"}, {"http://example.com/a\\b", "stands in no URL"}, {"http://example.com/é", "stands in no URL"}, {"http://example.com/%zz", "percent-encoding"},
		{"http://example.com/a\r\nb", "stands in no URL"}, {"http://example.com/{a", "do not pair"}, {"http://example.com/a}", "do not pair"}, {"http://example.com/{}", "is no argument"},
		{"http://example.com/{a b}", "is no argument"}, {"http://example.com/{{a}}", "do not pair"}, {"http://example.com/?{a}=b", "names are fixed"}, {"http://example.com/${env:KEY}", "not in the path"},
		{"http://example.com/?k=${KEY}", "is no credential"}, {"http://exämple.com/", "international name"}, {"http://example..com/", "is no host"}, {"http://example.com:/", "no port"},
		{"http://[fe80::1%25eth0]/", "zone"}, {"http://2130706433/", "to some and a name to others"}, {"http://0x7f000001/", "to some and a name to others"}, {"http://0x7f.0.0.1/", "to some and a name to others"},
		{"http://0177.0.0.1/", "to some and a name to others"}, {"http://127.1/", "to some and a name to others"}, {"http://1.2.3.4.5/", "to some and a name to others"}, {"http://a.0x1/", "to some and a name to others"},
		{"http://127.0.0.1/", "is not public"}, {"http://localhost/", "is not public"}, {"http://LOCALHOST./", "is not public"}, {"http://a.localhost/", "is not public"}, {"http://10.0.0.1/", "is not public"},
		{"http://172.31.255.255/", "is not public"}, {"http://192.168.1.1/", "is not public"}, {"http://100.64.0.1/", "is not public"}, {"http://169.254.169.254/", "is not public"}, {"http://0.0.0.0/", "is not public"},
		{"http://255.255.255.255/", "is not public"}, {"http://224.0.0.1/", "is not public"}, {"http://168.63.129.16/", "is not public"}, {"http://100.100.100.200/", "is not public"}, {"http://[::1]/", "is not public"},
		{"http://[::]/", "is not public"}, {"http://[fe80::1]/", "is not public"}, {"http://[fd00:ec2::254]/", "is not public"}, {"http://[ff02::1]/", "is not public"}, {"http://[::ffff:127.0.0.1]/", "is not public"},
		{"http://[::ffff:a9fe:a9fe]/", "is not public"}, {"http://[::127.0.0.1]/", "is not public"}, {"http://[64:ff9b::127.0.0.1]/", "is not public"}, {"http://[64:ff9b:1::a00:1]/", "is not public"},
		{"http://[2002:7f00:1::]/", "is not public"}, {"http://[2002:a9fe:a9fe::1]/", "is not public"}, {"http://[2001:0:7f00:1::]/", "is not public"}, {"http://[2001:db8::1]/", "is not public"}, {"http://[4000::1]/", "is not public"},
	} {
		_, err := httptool.New(httptool.Config{Name: "x", Description: "d", URL: c.url})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "user:pass") {
			t.Errorf("%q: got %v, want %q", c.url, err, c.want)
		}
	}
	for _, public := range []string{"https://example.com", "http://8.8.8.8:8080/x?a=b", "https://[2606:4700::1111]/", "http://[64:ff9b::8.8.8.8]/", "https://xn--exmple-cua.com./", "http://1.example.com/"} {
		if _, err := httptool.New(httptool.Config{Name: "x", Description: "d", URL: public}); err != nil {
			t.Errorf("%q: %v", public, err)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, trick := range tricks {
		f.Add("/v1/{x}/info?q={x}", trick)
	}
	f.Add("/{x}", "..")
	f.Add("/a{x}b/{x}.json?a=b&c={x}&d=%20", "é")
	f.Fuzz(func(t *testing.T, rest, value string) {
		const origin = "http://example.com"
		if rest != "" && rest[0] != '/' && rest[0] != '?' {
			return // part of the host, which is the operator's
		}
		u, shape, ok := httptool.FillForTest(origin+rest, value)
		if !ok {
			return
		}
		if u.Scheme != "http" || u.Host != "example.com" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
			t.Fatalf("%q with %q goes to %s", rest, value, u)
		}
		if got := strings.Count(u.EscapedPath(), "/"); got != shape.Segments {
			t.Fatalf("%q with %q has %d segments, want %d: %s", rest, value, got, shape.Segments, u)
		}
		for s := range strings.SplitSeq(u.EscapedPath(), "/") {
			if plain, err := url.PathUnescape(s); err != nil || plain == "." || plain == ".." {
				t.Fatalf("%q with %q climbs: %s", rest, value, u)
			}
		}
		again, err := url.Parse(u.String())
		if err != nil || again.EscapedPath() != u.EscapedPath() || again.RawQuery != u.RawQuery {
			t.Fatalf("%q with %q is read otherwise: %s, %v", rest, value, u, err)
		}
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			t.Fatalf("%q with %q has no legal query: %s: %v", rest, value, u, err)
		}
		pairs := 0
		for _, values := range q {
			pairs += len(values)
		}
		if pairs > shape.Pairs {
			t.Fatalf("%q with %q has %d pairs, want at most %d: %s", rest, value, pairs, shape.Pairs, u)
		}
	})
}
