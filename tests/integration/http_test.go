package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

const petDocument = `
openapi: 3.0.3
info: {title: Pets, version: "1"}
security: [{key: []}]
paths:
  /pets:
    get:
      operationId: listPets
      summary: Lists pets
      parameters: [{name: kind, in: query, schema: {type: string}}]
      responses: {"200": {description: ok}}
    post:
      operationId: createPet
      summary: Adds a pet
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
      responses: {"201": {description: created}}
  /pets/{petId}:
    delete:
      operationId: removePet
      summary: Removes a pet
      parameters: [{name: petId, in: path, required: true, schema: {type: string}}]
      responses: {"204": {description: gone}}
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Api-Key}}
  schemas: {Pet: {type: object, required: [name], properties: {name: {type: string}, kind: {type: string}}}}
`

// petShop is an API that refuses its first list, as a busy one does.
type petShop struct {
	mu    sync.Mutex
	lists int
	pets  []string
	keys  []string // Idempotency-Key of what was created
}

func (s *petShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("X-Api-Key") != "k3y-of-pets" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/pets":
		if s.lists++; s.lists == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"count":%d,"kind":%q}`, len(s.pets), r.URL.Query().Get("kind"))
	case "POST /v1/pets":
		body, _ := io.ReadAll(r.Body)
		s.pets, s.keys = append(s.pets, string(body)), append(s.keys, r.Header.Get("Idempotency-Key"))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"p1"}`)
	case "DELETE /v1/pets/p1":
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"reason":"no such pet"}`)
	}
}

// An API described by a document is used by an agent: its operations are pools, a busy answer is tried again after as long as
// it asks for, an effect is named by its call, and what is refused is read by the model.
func TestOperationsOfADocumentAreToolsOfAnAgent(t *testing.T) {
	shop := &petShop{}
	api := httptest.NewServer(shop)
	defer api.Close()
	set, err := httptool.OpenAPI(httptool.OpenAPIConfig{
		Name: "pets", Document: []byte(petDocument), BaseURL: api.URL + "/v1", Network: httptool.Network{Allow: []string{"127.0.0.1"}},
		Credentials: map[string]string{"key": "${env:PET_KEY}"}, LookupEnv: func(string) (string, bool) { return "k3y-of-pets", true },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	tools, err := set.Tools(nil)
	if err != nil || len(tools) != 3 || len(set.Skipped()) != 0 {
		t.Fatalf("%v, %v, %v", tools, err, set.Skipped())
	}
	f := newFabric(t)
	llm := script(t, `rules:
  - {user: add, after: [createPet, listPets, removePet], text: 'id {{ (index .results.createPet 0).value.id }}, count {{ (index .results.listPets 0).value.count }}, removals {{ json .results.removePet }}'}
  - {user: add, after: [createPet, listPets], calls: [{tool: removePet, args: {petId: ../owners}}, {tool: removePet, args: {petId: p2}}, {tool: removePet, args: {petId: p1}}]}
  - {user: add, after: [createPet], calls: [{tool: listPets, args: {kind: dog}}]}
  - {user: add, turn: 0, calls: [{tool: createPet, args: {body: {name: Rex, kind: dog}}}]}
`)
	f.coordinate(newAgent(t, "vet", llm, "createPet", "listPets", "removePet"))
	f.work(tools...)
	out := f.ask("vet", protocol.NewID(), "add one")
	for _, want := range []string{"id p1, count 1", "would be another path", "HTTP 404 Not Found", "no such pet", `"status":204`} {
		contains(t, "the answer", strings.ReplaceAll(out.Text, `\"`, `"`), want)
	}
	shop.mu.Lock()
	defer shop.mu.Unlock()
	if len(shop.pets) != 1 || shop.pets[0] != `{"kind":"dog","name":"Rex"}` || shop.keys[0] == "" || shop.lists != 2 {
		t.Errorf("the shop has %+v", shop)
	}
	for _, one := range tools {
		if c, _ := tool.As[tool.Configured](one); one.Name() == "createPet" && c.Settings().Effect != tool.AtMostOnce {
			t.Errorf("createPet is %s", c.Settings().Effect)
		}
	}
}
