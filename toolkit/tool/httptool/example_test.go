package httptool_test

import (
	"encoding/json"
	"fmt"

	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

func ExampleNew() {
	weather, err := httptool.New(httptool.Config{
		Name: "weather", Description: "Tells the weather of a city.",
		URL: "https://api.example.com/v1/{city}/days?units={units}",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(weather.(tool.Configured).Settings().Effect)
	fmt.Printf("%s\n", weather.(tool.Runnable).Declaration().ParametersJsonSchema)

	_, err = httptool.New(httptool.Config{Name: "metadata", Description: "Reads what it should not.", URL: "http://169.254.169.254/latest"})
	fmt.Println(err)
	// Output:
	// read
	// {"additionalProperties":false,"properties":{"city":{"type":"string"},"units":{"type":"string"}},"required":["city"],"type":"object"}
	// usage: tool metadata: 169.254.169.254 is not public, and may not be reached: whoever serves the tool can allow it, with --allow 169.254.169.254 or allow in its file
}

func ExampleOpenAPI() {
	document := `
openapi: 3.0.3
info: {title: Pets, version: "1"}
paths:
  /pets/{petId}:
    get:
      operationId: getPet
      parameters: [{name: petId, in: path, required: true, schema: {type: integer}}]
      responses: {"200": {description: A pet}}
  /pets/{petId}/photo:
    put:
      operationId: setPhoto
      parameters: [{name: petId, in: path, required: true, schema: {type: integer}}]
      requestBody: {required: true, content: {image/png: {}}}
      responses: {"204": {description: Set}}
`
	pets, err := httptool.OpenAPI(httptool.OpenAPIConfig{Name: "pets", Document: []byte(document), BaseURL: "https://pets.example.com/v1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pets.Close()
	tools, _ := pets.Tools(nil)
	for _, t := range tools {
		fmt.Println(t.Name(), string(t.(tool.Runnable).Declaration().ParametersJsonSchema.(json.RawMessage)))
	}
	for _, s := range pets.Skipped() {
		fmt.Println(s)
	}
	// Output:
	// getPet {"additionalProperties":false,"properties":{"petId":{"type":"integer"}},"required":["petId"],"type":"object"}
	// PUT /pets/{petId}/photo (setPhoto): its body is of image/png, and only JSON and forms are supported
}
