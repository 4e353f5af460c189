package httptool_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// petstore is the toolset of testdata/petstore.yaml at a server.
func petstore(t testing.TB, url string) httptool.OpenAPIConfig {
	t.Helper()
	return httptool.OpenAPIConfig{
		Name: "pets", Document: read(t, "petstore.yaml"), BaseURL: url + "/v1/", Network: loopback,
		Credentials: map[string]string{"api_key": "${env:PET_KEY}", "token": "${env:PET_TOKEN}"},
		LookupEnv: func(name string) (string, bool) {
			v, ok := map[string]string{"PET_KEY": "k3y-of-pets", "PET_TOKEN": "t0ken-of-owners"}[name]
			return v, ok
		},
	}
}

func opened(t testing.TB, cfg httptool.OpenAPIConfig) *httptool.Set {
	t.Helper()
	s, err := httptool.OpenAPI(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func toolsOf(t testing.TB, s *httptool.Set) map[string]tool.Tool {
	t.Helper()
	list, err := s.Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]tool.Tool{}
	for _, one := range list {
		all[one.Name()] = one
	}
	return all
}

func TestDeclarationsOfADocument(t *testing.T) {
	s := opened(t, petstore(t, "https://pets.example.com"))
	list, _ := s.Tools(nil)
	var got bytes.Buffer
	for _, one := range list {
		it, err := invoke.New(one)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.MarshalIndent(it.Declaration(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(b, '\n'))
	}
	for _, skipped := range s.Skipped() {
		fmt.Fprintln(&got, skipped)
	}
	path := filepath.Join("testdata", "petstore.golden")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, "petstore.golden"); !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got\n%s\nwant\n%s", got.Bytes(), want)
	}
}

func TestOperationsOfADocumentAreCalled(t *testing.T) {
	s := record(t, nil)
	all := toolsOf(t, opened(t, petstore(t, s.URL)))
	remove := tool.Alias("pets.delete")
	for _, c := range []struct {
		tool, args, line, body string
		header                 map[string]string
	}{
		{"listPets", `{"X-Tenant":"a","limit":5,"tag":["x","y z"],"status":["available","sold"],"filter":{"age":3,"kind":"d&g"},"where":{"a":[1]},"theme":"dark; admin=1"}`,
			"GET /v1/pets?limit=5&tag=x&tag=y%20z&status=available%7Csold&filter%5Bage%5D=3&filter%5Bkind%5D=d%26g&where=%7B%22a%22%3A%5B1%5D%7D", "",
			map[string]string{"X-Tenant": "a", "X-Api-Key": "k3y-of-pets", "Cookie": "theme=dark%3B%20admin%3D1", "Authorization": ""}},
		{"createPet", `{"X-Tenant":"a","body":{"name":"Rex","parent":{"name":"Mo"},"tag":null}}`, "POST /v1/pets", `{"name":"Rex","parent":{"name":"Mo"},"tag":null}`,
			map[string]string{"Content-Type": "application/json", "Idempotency-Key": "c1"}},
		{"get_pets_petId", `{"petId":9007199254740993}`, "GET /v1/pets/9007199254740993", "", map[string]string{"X-Api-Key": "k3y-of-pets"}},
		{remove, `{"petId":7}`, "DELETE /v1/pets/7", "", map[string]string{"X-Api-Key": "", "Authorization": ""}},
		{"renameOwner", `{"path_body":"b","id":"1","id_query":"2","body":{"name":"A&B"},"X-Request":"r"}`, "POST /v1/owners/b/1?id=2", "name=A%26B",
			map[string]string{"Authorization": "Bearer t0ken-of-owners", "X-Api-Key": "", "X-Request": "r", "Content-Type": "application/x-www-form-urlencoded"}},
	} {
		before := len(s.got())
		if all[c.tool] == nil {
			t.Errorf("no tool %s among %v", c.tool, all)
			continue
		}
		r, err := run(t, t.Context(), all[c.tool], c.args)
		got := s.got()[before:]
		if err != nil || len(got) != 1 || got[0].line != c.line || got[0].body != c.body {
			t.Errorf("%s: %s, %v, %+v; want %s %s", c.tool, r.Value, err, got, c.line, c.body)
			continue
		}
		for name, want := range c.header {
			if v := got[0].header.Get(name); v != want {
				t.Errorf("%s: %s is %q, want %q", c.tool, name, v, want)
			}
		}
	}
}

func TestTheSuiteOfAnOperation(t *testing.T) {
	s := record(t, nil)
	tooltest.Run(t, func() tool.Tool {
		set := opened(t, petstore(t, s.URL))
		return toolsOf(t, set)["createPet"]
	},
		tooltest.Case{Name: "created", Args: `{"X-Tenant":"a","body":{"name":"Rex"}}`, Want: `{"ok":true}`},
		tooltest.Case{Name: "no name", Args: `{"X-Tenant":"a","body":{}}`, Refused: true},
		tooltest.Case{Name: "a bad friend", Args: `{"X-Tenant":"a","body":{"name":"Rex","friends":[{"name":""}]}}`, Refused: true},
		tooltest.Case{Name: "no body", Args: `{"X-Tenant":"a"}`, Refused: true},
	)
}

func TestOperationsAreChosenByName(t *testing.T) {
	names := func(entries ...string) string {
		cfg := petstore(t, "https://pets.example.com")
		cfg.Operations = entries
		all := toolsOf(t, opened(t, cfg))
		var list []string
		for name := range all {
			list = append(list, name)
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	for want, entries := range map[string][]string{
		"listPets": {"listPets"}, "get_pets_petId listPets": {"GET *"}, "createPet get_pets_petId listPets": {"GET /pets/{petId}", "*ePet", "listPets"}, "": {},
	} {
		if got := names(entries...); got != want {
			t.Errorf("%v: got %s, want %s", entries, got, want)
		}
	}
	for entry, want := range map[string]string{"listPet": `did you mean "listPets"`, "get /pets": `did you mean "GET /pets"`, "nothing-like-it": "an entry is an operationId"} {
		cfg := petstore(t, "https://pets.example.com")
		cfg.Operations = []string{entry}
		if _, err := httptool.OpenAPI(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	cfg := petstore(t, "https://pets.example.com")
	cfg.Effects = map[string]tool.Effect{"GET *": tool.Idempotent, "listPets": tool.Read, "createPet": tool.Idempotent}
	all := toolsOf(t, opened(t, cfg))
	for name, want := range map[string]tool.Effect{"listPets": tool.Read, "get_pets_petId": tool.Idempotent, "createPet": tool.Idempotent, "renameOwner": tool.AtMostOnce} {
		if got := all[name].(tool.Configured).Settings().Effect; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestServersOfADocumentAreUsedWhenAllowed(t *testing.T) {
	cfg := petstore(t, "")
	cfg.BaseURL, cfg.Servers = "", true
	if n := len(toolsOf(t, opened(t, cfg))); n != 5 {
		t.Errorf("%d tools", n)
	}
	cfg.Servers = false
	if _, err := httptool.OpenAPI(cfg); err == nil || !strings.Contains(err.Error(), "base URL") {
		t.Error(err)
	}
	for server, want := range map[string]string{
		"/v1": "no URL of a host", "http://169.254.169.254/": "is not public", "http://localhost:8080": "is not public", "file:///etc": "is no URL", "http://u:p@example.com": "user or a password",
		"https://{host}/": "no URL of a host", "https://${env:HOME}/": "no URL of a host", "https://2130706433/": "to some and a name to others", "": "no URL of a host",
	} {
		doc := `{"openapi":"3.0.0","servers":[{"url":` + string(quoted(server)) + `}],"paths":{"/a":{"get":{"operationId":"a"}}}}`
		s := opened(t, httptool.OpenAPIConfig{Name: "x", Document: []byte(doc), Servers: true})
		if got := s.Skipped(); len(got) != 1 || !strings.Contains(got[0].Reason, want) {
			t.Errorf("%q: %v, want %s", server, got, want)
		}
	}
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

func TestCredentialsAreBoundByScheme(t *testing.T) {
	cfg := petstore(t, "https://pets.example.com")
	cfg.Credentials = map[string]string{"token": "${env:PET_TOKEN}"}
	s := opened(t, cfg)
	if all := toolsOf(t, s); len(all) != 2 || all["renameOwner"] == nil || all[tool.Alias("pets.delete")] == nil {
		t.Errorf("%v", all)
	}
	if skipped := fmt.Sprint(s.Skipped()); !strings.Contains(skipped, "GET /pets (listPets): it needs the credential api_key") {
		t.Error(skipped)
	}
	for name, want := range map[string]string{"api-key": `no security scheme "api-key", but 2 others: ["api_key" "token"]`, "api_key": "{key} has no place"} {
		cfg.Credentials = map[string]string{name: "{key}"}
		if _, err := httptool.OpenAPI(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg.Credentials = map[string]string{"api_key": "${env:NOPE}"}
	if _, err := httptool.OpenAPI(cfg); err == nil || !strings.Contains(err.Error(), "NOPE") {
		t.Error(err)
	}
	cfg.Credentials, cfg.Headers = nil, map[string]string{"Authorization": "Bearer ${env:PET_KEY}", "x-tenant": "fixed"}
	list := toolsOf(t, opened(t, cfg))["listPets"]
	if list == nil || strings.Contains(string(list.(tool.Runnable).Declaration().ParametersJsonSchema.(json.RawMessage)), "X-Tenant") {
		t.Errorf("the operator's header is an argument, or does not count: %v", list)
	}
}

// What is wrong in one operation is reported by its name, and hides no other.
func TestWhatIsWrongInOneOperationHidesNoOther(t *testing.T) {
	s := opened(t, httptool.OpenAPIConfig{Name: "x", Document: read(t, "hostile.json"), BaseURL: "https://api.example.com"})
	var got []string
	for _, skipped := range s.Skipped() {
		got = append(got, skipped.String())
	}
	all := strings.Join(got, "\n") + "\n"
	for _, want := range []string{
		"GET /file (file): it refers to \"file:///etc/passwd\", outside the document",
		"GET /remote (remote): it refers to \"http://169.254.169.254/latest/meta-data\", outside the document",
		"GET /relative (relative): it refers to \"other.yaml#/components/schemas/A\", outside the document",
		"GET /dangling (dangling): it refers to \"#/components/schemas/Nope\", which is not there",
		"GET /elsewhere (elsewhere): it refers to \"#/paths/~1ok/get\", and only #/components/... is followed",
		"/itemref: it refers to \"http://evil.test/item.json\", outside the document",
		"GET /places/{a}/{b} (places): its path has {b}, which is no parameter of it",
		"GET /nowhere (nowhere): its parameter \"a\" stands nowhere in its path",
		"GET /query?x=1 (query): its path is no path",
		"GET //evil.test/{x} (matrix): its parameter \"x\" (in path): the style matrix is not supported",
		"GET /secret/${env:HOME} (secret): the path /secret/${env:HOME}: a credential stands in a header",
		"GET /climb/../../admin (climb): the path /climb/../../admin: a segment \"..\" leads elsewhere",
		"GET /host (host): its parameter \"Host\" (in header): header Host: it is set by the request itself",
		"GET /crlf (crlf): its parameter \"X\\r\\nY\" (in header): header",
		"TRACE /trace (trace): the method TRACE is not supported",
		"GET /ok2 (ok): its name ok is that of GET /ok (ok) already",
		"GET /hidden (hidden): tool hidden: the description holds U+202E",
		"GET /dynamic (dynamic): a schema of it uses $dynamicRef",
		"POST /multipart (multipart): its body is of multipart/form-data",
		"GET /parameterloop (parameterloop): ",
		"GET /optional (optional): its parameter \"obj\" (in cookie), which is optional: an object there is not supported",
		"GET /wrongtype (wrongtype): ",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
	for _, skipped := range s.Skipped() {
		if skipped.Served != strings.Contains(skipped.Reason, "which is optional") {
			t.Errorf("%s: served is %v", skipped, skipped.Served)
		}
	}
	tools := toolsOf(t, s)
	for _, want := range []string{"ok", "cyclic", "optional", "nullable"} {
		if tools[want] == nil {
			t.Errorf("%s is no tool", want)
		}
	}
	if len(tools) != 4 {
		t.Errorf("%d tools: %v\n%s", len(tools), tools, all)
	}
}

func TestDocumentsThatCannotBeReadAreRefused(t *testing.T) {
	bomb := "openapi: 3.0.0\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {"", "it is empty"},
		"a list":           {"[1,2]", "no mapping"},
		"no version":       {"info: {}", "its version"},
		"version 4":        {"openapi: 4.0.0", "its version"},
		"Swagger":          {`{"swagger":"2.0"}`, "Swagger 2.0"},
		"no YAML":          {"openapi: 3.0.0\n  paths: [", "neither JSON nor YAML"},
		"a YAML bomb":      {bomb, "anchors and aliases"},
		"a merge key":      {"openapi: 3.0.0\nx: {<<: {a: 1}}", "no plain word"},
		"a tag":            {"openapi: 3.0.0\nx: !!binary aGk=", "tags are not read"},
		"a key twice":      {"openapi: 3.0.0\nx: {a: 1, a: 2}", "twice"},
		"a JSON key twice": {`{"openapi":"3.0.0","openapi":"3.1.0"}`, "openapi"},
		"deep JSON":        {`{"openapi":"3.0.0","x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, "nest"},
		"deep YAML":        {"openapi: 3.0.0\nx: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "nested deeper"},
		"unclosed":         {"openapi: 3.0.0\nx: " + strings.Repeat("[", 100000), "neither JSON nor YAML"},
		"huge":             {"openapi: 3.0.0\nx: " + strings.Repeat("x", httptool.MaxDocument), "bytes are more than"},
	} {
		_, err := httptool.OpenAPI(httptool.OpenAPIConfig{Name: "x", Document: []byte(c.text), BaseURL: "https://api.example.com"})
		if protocol.CodeOf(err) != protocol.CodeUsage || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.300v, want %s", name, err, c.want)
		}
	}
	for url, want := range map[string]string{"https://{a}/": "are fixed", "https://example.com/?a=1": "neither arguments nor a query", "http://127.0.0.1": "is not public", "example.com": "is no URL"} {
		if _, err := httptool.OpenAPI(httptool.OpenAPIConfig{Name: "x", Document: []byte("openapi: 3.0.0"), BaseURL: url}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A schema in which everything refers to everything stays as small as it was written, or is refused for its size.
func TestWhatASchemaCostsIsBounded(t *testing.T) {
	var schemas []string
	for i := range 40 {
		schemas = append(schemas, fmt.Sprintf(`"S%d":{"type":"object","properties":{"a":{"$ref":"#/components/schemas/S%d"},"b":{"$ref":"#/components/schemas/S%d"}}}`, i, (i+1)%40, (i+7)%40))
	}
	doc := func(extra string) []byte {
		return []byte(`{"openapi":"3.0.3","paths":{"/a":{"post":{"operationId":"a","requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S0"}}}}}}},"components":{"schemas":{` +
			strings.Join(schemas, ",") + extra + `}}}`)
	}
	s := opened(t, httptool.OpenAPIConfig{Name: "x", Document: doc(""), BaseURL: "https://api.example.com"})
	if len(toolsOf(t, s)) != 1 {
		t.Fatal(s.Skipped())
	}
	schemas[39] = `"S39":{"type":"object","description":` + string(quoted(strings.Repeat("x", 70<<10))) + `}`
	s = opened(t, httptool.OpenAPIConfig{Name: "x", Document: doc(""), BaseURL: "https://api.example.com"})
	if got := s.Skipped(); len(got) != 1 || !strings.Contains(got[0].Reason, "its schema has") {
		t.Error(got)
	}
	schemas[39] = `"S39":{"type":"object","description":` + string(quoted(strings.Repeat("x", 2<<20))) + `}`
	s = opened(t, httptool.OpenAPIConfig{Name: "x", Document: doc(""), BaseURL: "https://api.example.com"})
	if got := s.Skipped(); len(got) != 1 || !strings.Contains(got[0].Reason, "what it refers to has") {
		t.Error(got)
	}
}

// A body that may be left out and cannot be made is left out of the tool, and that is said.
func TestABodyThatIsLeftOutIsNamed(t *testing.T) {
	doc := `{"openapi":"3.0.0","info":{"title":"x","version":"1"},"paths":{"/photo":{"post":{"operationId":"photo","requestBody":{
		"content":{"multipart/form-data":{"schema":{"type":"object"}}}},"responses":{"200":{"description":"ok"}}}}}}`
	s := opened(t, httptool.OpenAPIConfig{Name: "x", Document: []byte(doc), BaseURL: "https://api.example.com"})
	got := s.Skipped()
	if len(got) != 1 || !got[0].Served || got[0].String() != "POST /photo (photo): its body, which is optional, is of multipart/form-data, and only JSON and forms are supported" {
		t.Errorf("got %v", got)
	}
	if toolsOf(t, s)["photo"] == nil {
		t.Error("it is no tool")
	}
}
