package workerfile

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

const pets = `openapi: 3.0.0
paths:
  /pets:
    get: {operationId: listPets, security: [{key: []}]}
    post: {operationId: createPet}
  /files:
    post: {operationId: upload, requestBody: {required: true, content: {image/png: {}}}}
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}}
`

func TestEndpointsAndDocumentsOfAFileAreServed(t *testing.T) {
	path := write(t, map[string]string{"pets.yaml": pets, "token": "f1le-token\n", "w.yaml": `
tools:
  - name: weather
    description: Tells the weather.
    http:
      method: POST
      url: https://api.example.com/v1/{city}?units={units}
      headers: {Authorization: "Bearer ${env:TOKEN}", X-Api: "${file:token}"}
      body: form
      allow: [10.0.0.0/8]
      max_response: 1000
      binary: [image/png]
    schema: {type: object, properties: {city: {type: string}, units: {type: string}, more: {type: string}}, required: [city]}
    effect: idempotent
    timeout: 5s
    confirm: true
  - name: listPets
    description: Another of that name.
    http: {url: https://api.example.com/pets}
openapi:
  - name: pets
    document: pets.yaml
    base_url: https://pets.example.com/v1
    credentials: {key: "${env:TOKEN}"}
    headers: {X-Tenant: a}
    effects: {createPet: idempotent}
    park_timeout: 2h
  - name: more
    document: pets.yaml
    prefix: more
    base_url: https://pets.example.com/v1
    only: [listPets, createPet]
    basic: "u:${env:TOKEN}"
`})
	f, err := Read(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	var skipped []string
	tools, err := f.Build(t.Context(), func(set string, s httptool.Skipped) { skipped = append(skipped, set+": "+s.String()) })
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]tool.Settings{}
	var names []string
	for _, one := range tools {
		names = append(names, one.Name())
		c, _ := tool.As[tool.Configured](one)
		settings[one.Name()] = c.Settings()
	}
	if want := []string{"weather", "listPets", "createPet", "more_listPets", "more_createPet"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	if s := settings["weather"]; s.Effect != tool.Idempotent || s.Timeout != 5*time.Second || !s.Confirm {
		t.Errorf("weather: %+v", s)
	}
	if s := settings["listPets"]; s.Effect != tool.Read {
		t.Errorf("listPets: %+v", s)
	}
	if s := settings["createPet"]; s.Effect != tool.Idempotent || s.ParkTimeout != 2*time.Hour {
		t.Errorf("createPet: %+v", s)
	}
	all := strings.Join(skipped, "\n")
	for _, want := range []string{"pets: POST /files (upload): its body is of image/png", "pets: listPets: two tools are named listPets: one is of tools, one of openapi pets"} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
}

func TestADocumentIsReadFromItsURL(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(pets)) }))
	defer s.Close()
	build := func(more string) ([]tool.Tool, error) {
		f, err := Read(write(t, map[string]string{"w.yaml": "openapi: [{name: pets, document: '" + s.URL + "', base_url: 'https://pets.example.com', only: [createPet]" + more + "}]"}), environment)
		if err != nil {
			t.Fatal(err)
		}
		return f.Build(t.Context(), func(set string, s httptool.Skipped) { t.Error(set, s) })
	}
	if tools, err := build(", allow: [127.0.0.1]"); err != nil || len(tools) != 1 || tools[0].Name() != "createPet" {
		t.Errorf("%v, %v", tools, err)
	}
	if _, err := build(""); protocol.CodeOf(err) != protocol.CodeUsage || !strings.Contains(err.Error(), "is not public") {
		t.Error(err)
	}
}

func TestFaultsOfRequestsAreToldWithTheirPlace(t *testing.T) {
	path := write(t, map[string]string{"w.yaml": `tools:
  - name: a
    description: d
    http: {url: https://e.test, methode: GET}
  - name: b
    description: d
    command: [x]
    http: {url: https://e.test}
  - name: c
    description: d
    http: {method: GET}
  - name: d
    description: d
  - {name: e, description: d, http: https://e.test}
openapi:
  - name: x
    document: x.yaml
  - name: y
    base_url: https://e.test
    effect: read
  - name: z
    document: z.yaml
    base_url: https://e.test
    effects: {a: maybe}
`})
	_, err := Read(path, environment)
	if protocol.CodeOf(err) != protocol.CodeUsage {
		t.Fatal(err)
	}
	for _, want := range []string{
		`w.yaml:4:33: unknown key "methode"; did you mean "method"?`, `w.yaml:7:14: this goes with a command`, `w.yaml:11:`, `needs the key "url"`, `w.yaml:12:9: a tool needs the key "command", or "http"`,
		`w.yaml:14:37: http is a mapping`, `where is the API?`, `needs the key "document"`, `unknown key "effect"; did you mean "effects"?`, `a: unknown effect "maybe"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
}

func TestWhatCannotBeServedIsNamedAtOnce(t *testing.T) {
	path := write(t, map[string]string{"w.yaml": `tools:
  - {name: a, description: d, http: {url: "http://10.0.0.1/"}}
  - {name: b, description: d, http: {url: "https://e.test/", headers: {X: "${env:NOPE}"}}}
openapi:
  - {name: gone, document: gone.yaml, base_url: "https://e.test"}
`})
	f, err := Read(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Build(t.Context(), nil)
	for _, want := range []string{"tool a: 10.0.0.1 is not public", "tool b: environment variable NOPE", "toolset gone: the document cannot be read"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
}
