package httptool_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

// names is a resolver that answers each question for an address with what say returns for the name, and counts them.
func names(t *testing.T, say func(name string, asked int) []netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		asked := map[string]int{}
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := answerName(buf[:n], func(name string) []netip.Addr {
				asked[name]++
				return say(name, asked[name])
			}); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answerName answers one question of type A; questions of other types get no record.
func answerName(q []byte, say func(string) []netip.Addr) []byte {
	if len(q) < 12 {
		return nil
	}
	var labels []string
	at := 12
	for at < len(q) && q[at] != 0 {
		n := int(q[at])
		labels = append(labels, string(q[at+1:at+1+n]))
		at += 1 + n
	}
	at += 5 // the root, type and class
	var addrs []netip.Addr
	if binary.BigEndian.Uint16(q[at-4:]) == 1 {
		addrs = say(strings.Join(labels, "."))
	}
	reply := append([]byte{}, q[:at]...)
	copy(reply[2:], []byte{0x81, 0x80, 0, 1, 0, byte(len(addrs)), 0, 0, 0, 0})
	for _, a := range addrs {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, a.AsSlice()...)
	}
	return reply
}

func addrs(texts ...string) []netip.Addr {
	all := make([]netip.Addr, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParseAddr(text)
	}
	return all
}

// port is where a recording server listens.
func (r *recorder) port() string { return r.URL[strings.LastIndex(r.URL, ":"):] }

func TestANameIsJudgedByWhatItResolvesTo(t *testing.T) {
	s := record(t, nil)
	for _, c := range []struct {
		allow []string
		addr  []string
		want  string
	}{
		{nil, []string{"127.0.0.1"}, "api.test (127.0.0.1) is not public"},
		{nil, []string{"169.254.169.254"}, "is not public"},
		{nil, []string{"10.0.0.1", "192.168.0.1"}, "is not public"},
		{[]string{"10.0.0.0/8", "other.test"}, []string{"127.0.0.1"}, "is not public"},
		{[]string{"127.0.0.0/8"}, []string{"127.0.0.1"}, `{"ok":true}`},
		{[]string{"127.0.0.1"}, []string{"127.0.0.1"}, `{"ok":true}`},
		{[]string{"API.test."}, []string{"127.0.0.1"}, `{"ok":true}`},
		{[]string{"api.test"}, []string{"169.254.169.254"}, "api.test (169.254.169.254) is not public"},
		{[]string{"api.test"}, []string{"0.0.0.0"}, "is not public"},
		{[]string{"127.0.0.1"}, []string{"169.254.169.254", "127.0.0.1"}, `{"ok":true}`}, // the one is not dialled, the other is
	} {
		r := names(t, func(string, int) []netip.Addr { return addrs(c.addr...) })
		before := len(s.got())
		allow := c.allow
		if allow == nil {
			allow = []string{}
		}
		got := value(t, httptool.Config{URL: "http://api.test" + s.port() + "/x", Network: httptool.Network{Allow: allow, Resolver: r}}, `{}`)
		if !strings.Contains(got, c.want) {
			t.Errorf("%v allowed, %v: got %s, want %s", c.allow, c.addr, got, c.want)
		}
		if reached := len(s.got()) - before; (reached == 1) != (c.want == `{"ok":true}`) {
			t.Errorf("%v allowed, %v: %d requests", c.allow, c.addr, reached)
		}
	}
}

// A name that is one address to a check and another to a connection gains nothing: what is dialled is what is checked. Here
// 127.0.0.2 stands for the address that may be reached, and 127.0.0.1 for the one behind the wall.
func TestRebindingReachesNothing(t *testing.T) {
	wall := record(t, nil)
	front, err := net.Listen("tcp", "127.0.0.2"+wall.port())
	if err != nil {
		t.Skipf("this machine has no second loopback address: %v", err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "front") })}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(front)
	}()
	defer func() {
		s.Close()
		<-done
	}()
	resolver := names(t, func(_ string, asked int) []netip.Addr {
		if asked%2 == 1 {
			return addrs("127.0.0.2")
		}
		return addrs("127.0.0.1")
	})
	ht := made(t, httptool.Config{URL: "http://rebind.test" + wall.port() + "/x", Network: httptool.Network{Allow: []string{"127.0.0.2"}, Resolver: resolver}})
	answers := map[bool]int{}
	for range 6 {
		r, _ := run(t, t.Context(), ht, `{}`)
		through := string(r.Value) == `{"result":"front"}`
		if !through && !strings.Contains(string(r.Value), "rebind.test (127.0.0.1) is not public") {
			t.Errorf("got %s", r.Value)
		}
		answers[through]++
		ht.(io.Closer).Close() // so that the name is looked up again
	}
	if len(wall.got()) != 0 || answers[true] != 3 || answers[false] != 3 {
		t.Errorf("%d requests went behind the wall; answers: %v", len(wall.got()), answers)
	}
}

func TestRedirectsAreBoundedAndCheckedAgain(t *testing.T) {
	other := record(t, nil)
	var s *recorder
	s = record(t, func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/same": "/end", "/relative": "end", "/other": other.URL + "/end", "/metadata": "http://169.254.169.254/latest/meta-data/", "/loopback6": "http://[::1]" + s.port() + "/",
			"/mapped": "http://[::ffff:10.0.0.1]/", "/decimal": "http://2130706433/", "/hex": "http://0x7f000001/", "/octal": "http://0177.0.0.1/", "/private": "http://10.0.0.1/", "/file": "file:///etc/passwd",
			"/gopher": "gopher://127.0.0.1/", "/user": "http://user:pass@127.0.0.1" + s.port() + "/", "/nowhere": "", "/broken": "http://[", "/loop": "/loop", "/1": "/2", "/2": "/3", "/3": "/end", "/0": "/1",
			"/name": "http://private.test/", "/nohost": "http:///x",
		}
		location, redirects := to[r.URL.Path]
		if !redirects {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true}`)
			return
		}
		if location != "" {
			w.Header()["Location"] = []string{location}
		}
		status := http.StatusFound
		if r.URL.Query().Get("status") == "307" {
			status = http.StatusTemporaryRedirect
		}
		w.WriteHeader(status)
	})
	resolver := names(t, func(string, int) []netip.Addr { return addrs("127.0.0.1") })
	t.Setenv("HTTPTOOL_TEST_KEY", "s3cr3t-key")
	call := func(method, path, args string) string {
		schema := object(`"a":{"type":"string"}`, ``)
		if method == "GET" {
			schema = nil
		}
		return value(t, httptool.Config{
			Method: method, URL: s.URL + path, Schema: schema, Headers: map[string]string{"Authorization": "Bearer ${env:HTTPTOOL_TEST_KEY}", "X-Api-Key": "${env:HTTPTOOL_TEST_KEY}", "Cookie": "a=b"},
			Network: httptool.Network{Allow: []string{"127.0.0.1"}, Resolver: resolver},
		}, args)
	}
	for path, want := range map[string]string{
		"/same": `{"ok":true}`, "/relative": `{"ok":true}`, "/other": `{"ok":true}`, "/1": `{"ok":true}`, "/0": "more than 3 redirects", "/loop": "more than 3 redirects",
		"/metadata": "is not public", "/loopback6": "is not public", "/mapped": "is not public", "/private": "is not public", "/decimal": "to some and a name to others", "/hex": "to some and a name to others",
		"/octal": "to some and a name to others", "/file": "leads to the scheme", "/gopher": "leads to the scheme", "/user": "with a user", "/nowhere": "not where to", "/broken": "no URL", "/nohost": "to no host",
	} {
		if got := call("GET", path, `{}`); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	for _, r := range other.got() {
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Referer", "Traceparent"} {
			if v := r.header.Get(name); v != "" {
				t.Errorf("%s: %s went to another host", name, v)
			}
		}
	}
	if n := len(other.got()); n != 1 {
		t.Errorf("%d requests at the other host, want 1", n)
	}
	if got := call("POST", "/other?status=307", `{"a":"x"}`); !strings.Contains(got, "leads a POST to another host") {
		t.Errorf("a body went to another host: %s", got)
	}
	before := len(s.got())
	if got := call("POST", "/same?status=307", `{"a":"x"}`); got != `{"ok":true}` {
		t.Error(got)
	}
	if got := s.got()[before:]; len(got) != 2 || got[1].line != "POST /end" || got[1].body != `{"a":"x"}` || got[1].header.Get("Idempotency-Key") != "c1" {
		t.Errorf("307: %+v", got)
	}
	before = len(s.got())
	if got := call("POST", "/same", `{"a":"x"}`); got != `{"ok":true}` {
		t.Error(got)
	}
	if got := s.got()[before:]; len(got) != 2 || got[1].line != "GET /end" || got[1].body != "" || got[1].header.Get("Authorization") == "" || got[1].header.Get("Idempotency-Key") != "" {
		t.Errorf("302: %+v", got)
	}
}

func TestARedirectDoesNotLeaveTLS(t *testing.T) {
	plain := record(t, nil)
	s := newTLS(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL+"/x", http.StatusFound) })
	got := value(t, httptool.Config{URL: s.URL + "/x", Network: httptool.Network{Allow: []string{"127.0.0.1"}, TLS: s.Client().Transport.(*http.Transport).TLSClientConfig}}, `{}`)
	if !strings.Contains(got, "from https to http") || len(plain.got()) != 0 {
		t.Errorf("%s, %d requests", got, len(plain.got()))
	}
}

func TestACertificateThatIsNotTrustedIsSaid(t *testing.T) {
	s := newTLS(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	ht := made(t, httptool.Config{URL: s.URL + "/x"})
	r, err := run(t, t.Context(), ht, `{}`)
	if err != nil || !strings.Contains(string(r.Value), "no certificate that is trusted") {
		t.Errorf("%s, %v", r.Value, err)
	}
}

func TestProxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	proxy, s := record(t, nil), record(t, nil)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	resolver := names(t, func(string, int) []netip.Addr { return addrs("127.0.0.1") })
	got := value(t, httptool.Config{URL: "http://api.test" + s.port() + "/x", Network: httptool.Network{Allow: []string{"api.test"}, Resolver: resolver}}, `{}`)
	if got != `{"ok":true}` || len(proxy.got()) != 0 || len(s.got()) != 1 {
		t.Errorf("%s, the proxy got %d requests", got, len(proxy.got()))
	}
}

func TestAnAllowanceThatMeansNothingIsRefused(t *testing.T) {
	for _, entry := range []string{"", "10.0.0.0/33", "http://10.0.0.1", "10.0.0.1:80", "*", "*.test", "::ffff:10.0.0.0/104", "a b"} {
		_, err := httptool.New(httptool.Config{Name: "x", URL: "https://example.com/", Network: httptool.Network{Allow: []string{entry}}})
		if err == nil || !strings.Contains(err.Error(), "allow") {
			t.Errorf("%q: %v", entry, err)
		}
	}
}
