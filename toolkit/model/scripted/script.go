package scripted

import (
	"regexp"
	"text/template"
	"time"

	"google.golang.org/genai"
)

// Script is a parsed script. It is immutable and may be shared.
type Script struct {
	rules []rule
	turns []turn
}

// rule is one line of the script's behaviour: when it holds, and what the model then answers.
type rule struct {
	name string

	user    *regexp.Regexp // nil matches any text
	results []resultMatch
	after   []string
	turn    int
	anyTurn bool

	text      *template.Template
	thought   *template.Template
	calls     []callRule
	signature []byte

	chunks      int
	splitCalls  bool
	partialArgs bool
	behaviour
}

// resultMatch asks for a result of tool whose JSON matches.
type resultMatch struct {
	tool string
	json *regexp.Regexp
}

// callRule is one call, or with each one call per item.
type callRule struct {
	tool string
	args any // template values where the script has templates
	each *each
}

// each fans a call out over the items of a value that is rendered and split.
type each struct {
	of    *template.Template
	split *regexp.Regexp
	as    string
}

// behaviour is how an answer travels: the faults and delays that tests ask for.
type behaviour struct {
	delay time.Duration
	fault *fault
	cut   bool
}

// fault is an HTTP error given instead of an answer, the first times times.
type fault struct {
	status     int
	message    string
	retryAfter time.Duration
	times      int
}

// turn is one answer of the raw mode.
type turn struct {
	chunks []Chunk
	behaviour
}

// Chunk is one piece of an answer in the provider's form. Only the last one of a whole answer has a finish reason.
type Chunk struct {
	Parts        []*genai.Part
	FinishReason genai.FinishReason
	Usage        *genai.GenerateContentResponseUsageMetadata
}
