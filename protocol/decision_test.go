package protocol

import (
	"reflect"
	"strings"
	"testing"
)

// decisions are the shapes that a decision on the confirmation k1 is taken in.
var decisions = []struct {
	name string
	text string
	want Decision
}{
	{"yes", `{"confirmed":true}`, Decision{Confirmed: true}},
	{"no", `{"confirmed":false}`, Decision{}},
	{"everything", `{"confirmed":true,"hint":"in May","payload":{"days":5},"digest":"` + digest + `","args":{"days":5}}`,
		Decision{Confirmed: true, Hint: "in May", Payload: raw(`{"days":5}`), Digest: digest, Args: raw(`{"days":5}`)}},
	{"a payload of any kind", ` { "confirmed" : false , "payload" : [ 1.10 , "x" ] } `, Decision{Payload: raw(`[ 1.10 , "x" ]`)}},
	{"no payload", `{"confirmed":true,"payload":null,"args":null}`, Decision{Confirmed: true}},
	{"keys that nobody knows", `{"confirmed":true,"by":"me"}`, Decision{Confirmed: true}},
	{"a function response", `{"id":"k1","name":"adk_request_confirmation","response":{"confirmed":true,"payload":3}}`, Decision{Confirmed: true, Payload: raw(`3`)}},
	{"a function response without a name", `{"id":"k1","response":{"confirmed":true}}`, Decision{Confirmed: true}},
	{"a response alone", `{"response":{"confirmed":false,"hint":"no"}}`, Decision{Hint: "no"}},
	{"a decision with its id", `{"id":"k1","confirmed":true}`, Decision{Confirmed: true}},
	{"a part of a content", `{"functionResponse":{"id":"k1","name":"adk_request_confirmation","response":{"confirmed":true}}}`, Decision{Confirmed: true}},
	{"ADK's text", `{"response":{"response":"{\"confirmed\":true,\"payload\":{\"amount\":5}}"}}`, Decision{Confirmed: true, Payload: raw(`{"amount":5}`)}},
	{"ADK's text in a part", `{"functionResponse":{"id":"k1","name":"adk_request_confirmation","response":{"response":"{\"confirmed\":false}"}}}`, Decision{}},
}

func TestDecodeDecisionTakesEveryShape(t *testing.T) {
	for _, c := range decisions {
		if got, err := DecodeDecision([]byte(c.text), "k1"); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

// malformed are no decisions on the confirmation k1: the text is what the approver is told of.
var malformed = []struct{ name, text, tells string }{
	{"nothing", ``, ""},
	{"no JSON", `yes`, ""},
	{"no object", `true`, ""},
	{"null", `null`, "confirmed"},
	{"an empty object", `{}`, `{"confirmed":true}`},
	{"other keys", `{"approved":true}`, "confirmed"},
	{"another case", `{"Confirmed":true}`, ""},
	{"two of a key", `{"confirmed":false,"confirmed":true}`, ""},
	{"two documents", `{"confirmed":true}{"confirmed":true}`, ""},
	{"a text for a yes", `{"confirmed":"yes"}`, "confirmed"},
	{"a number for a yes", `{"confirmed":1}`, "confirmed"},
	{"null for a yes", `{"confirmed":null}`, "confirmed"},
	{"a hint that is no text", `{"confirmed":true,"hint":{}}`, "hint"},
	{"another id", `{"id":"k2","confirmed":true}`, "k2"},
	{"another id in a part", `{"functionResponse":{"id":"k2","response":{"confirmed":true}}}`, "k2"},
	{"another function", `{"id":"k1","name":"refund","response":{"confirmed":true}}`, "refund"},
	{"a null response", `{"id":"k1","response":null}`, "confirmed"},
	{"an empty response", `{"id":"k1","response":{}}`, "confirmed"},
	{"a response that is no object", `{"response":[true]}`, ""},
	{"a text for the response", `{"response":"{\"confirmed\":true}"}`, ""},
	{"a response beside a yes", `{"confirmed":true,"response":{"confirmed":false}}`, "beside"},
	{"a part beside a yes", `{"confirmed":true,"functionResponse":{"response":{"confirmed":false}}}`, "beside"},
	{"a part beside a response", `{"response":{"confirmed":true},"functionResponse":{"response":{"confirmed":false}}}`, "functionResponse"},
	{"a part without a response", `{"confirmed":true,"functionResponse":{"id":"k1"}}`, "functionResponse"},
	{"ADK's text that is no JSON", `{"response":{"response":"nope"}}`, ""},
	{"ADK's text that is no text", `{"response":{"response":true}}`, "/response/response"},
	{"ADK's text beside a yes", `{"response":{"response":"{\"confirmed\":false}","confirmed":true}}`, "/response/response"},
	{"ADK's text in ADK's text", `{"response":{"response":"{\"response\":\"{}\"}"}}`, "confirmed"},
	{"ADK's text with two of a key", `{"response":{"response":"{\"confirmed\":false,\"confirmed\":true}"}}`, ""},
	{"edited arguments of a refusal", `{"confirmed":false,"args":{}}`, "args"},
	{"edited arguments that are no object", `{"confirmed":true,"args":[1]}`, "args"},
	{"a depth that nothing needs", `{"confirmed":true,"payload":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, ""},
}

func TestDecodeDecisionRefusesWhatIsNone(t *testing.T) {
	for _, c := range malformed {
		got, err := DecodeDecision([]byte(c.text), "k1")
		if CodeOf(err) != CodeBadMessage || !strings.Contains(err.Error(), c.tells) || !reflect.DeepEqual(got, Decision{}) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
}

func FuzzDecodeDecision(f *testing.F) {
	for _, c := range decisions {
		f.Add([]byte(c.text))
	}
	for _, c := range malformed {
		f.Add([]byte(c.text))
	}
	fuzzDecoder(f, func(data []byte) (Decision, error) { return DecodeDecision(data, "k1") })
}
