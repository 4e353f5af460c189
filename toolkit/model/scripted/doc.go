// Package scripted is a model that follows a script: rules over what the user said and what the tools answered, so that
// it works on real input it was never shown. It serves tests, demos and people without an API key.
//
//	rules:
//	  - name: count                       # shown in logs
//	    user: 'count words in (?P<files>.+)'
//	    calls:
//	      - tool: word_count
//	        each: {of: '{{ .files }}', split: ',\s*', as: file}
//	        args: {path: '{{ .file }}', deep: true, limit: {json: '{{ len .file }}'}}
//	  - name: report
//	    user: 'count words'
//	    after: [word_count]
//	    text: '{{ range .results.word_count }}{{ .args.path }} has {{ .value.words }} words. {{ end }}'
//
// The first rule that holds answers. It looks at the conversation since the user last spoke:
//
//	user      regular expression on the user's text; its named groups can be used in templates
//	turn      how many times the model has answered since then; 0 unless results or after are given, then any
//	results   tool: regular expression on the JSON of one of its answers; {"result": v} counts as v
//	after     tools that have all answered
//
// and says text, thought, calls, or several of them. Templates are text/template over .user, .turn, the captured groups
// and .results.TOOL, a list of {args, value}; missing keys are errors. They have json, trim, upper, lower,
// fields (the words of a text), join and sum.
// An argument that is a mapping with the one key json takes the JSON its template writes, as a number for example; other
// values keep their YAML type. each makes one call per item of a split text (items are trimmed, empty ones left out; the
// split is by commas and blanks unless given, the name is item unless given, .index counts from 0).
//
// For tests: chunks (pieces of text in a stream), split_calls (one call a chunk), partial_args (arguments in fragments),
// signature (base64, on the first call or after the text), delay (before each chunk), cut (the answer breaks off),
// error {status, message, retry_after, times} (without times, always).
//
// A script with turns instead of rules gives provider answers in order: parts, finishReason and usage, or chunks of
// these, in Gemini's JSON. Which turn is next is the number of model answers in the request, so that one script serves
// any number of conversations.
package scripted
