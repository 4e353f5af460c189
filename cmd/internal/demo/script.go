package demo

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Agent is who is asked.
const Agent = "archivist"

const agentFile = `name: archivist
model: gemini-2.5-flash
description: Knows the files of a folder.
instruction: Answer with the tools you have. Never guess a number.
tools:
  - name: measure
  - name: word_count
  - name: checksum
  - name: publish
  - name: print
`

// scriptFile is what the model says. It has never seen the files: it takes their names from the question and all numbers
// from what the tools answer.
const scriptFile = `rules:
  - name: measure
    user: 'files\?\n(?P<files>(?s:.+))'
    calls:
      - tool: measure
        each: {of: '{{ .files }}', split: '\n', as: file}
        args: {path: {json: '{{ .file }}'}}
    signature: c2lnbmVkIGJ5IGEgc2NyaXB0
  - name: report
    user: 'files\?'
    after: [word_count, checksum]
    text: |-
      {{ $words := "0" }}{{ $bytes := "0" -}}
      {{ range $i, $file := .results.measure -}}
      {{ $count := index (fields (index $.results.word_count $i).value) 0 -}}
      {{ $file.value.path }}: {{ $count }} words, {{ $file.value.bytes }} bytes, SHA-256 {{ index (fields (index $.results.checksum $i).value) 0 }}
      {{ $words = sum $words $count }}{{ $bytes = sum $bytes $file.value.bytes -}}
      {{ end -}}
      Together: {{ $words }} words, {{ $bytes }} bytes.
    chunks: 4
  - name: count and hash
    user: 'files\?\n(?P<files>(?s:.+))'
    after: [measure]
    calls:
      - tool: word_count
        each: {of: '{{ .files }}', split: '\n', as: file}
        args: {path: {json: '{{ .file }}'}}
      - tool: checksum
        each: {of: '{{ .files }}', split: '\n', as: file}
        args: {path: {json: '{{ .file }}'}}
    split_calls: true
  - name: publish and print
    user: 'Publish and print this line: (?P<line>.+)'
    calls:
      - {tool: publish, args: {line: '{{ .line }}'}}
      - {tool: print, args: {line: '{{ .line }}'}}
  - name: printed
    user: 'Publish and print'
    after: [publish]
    results: {print: '"sheets"'}
    text: The print is ready on {{ (index .results.print 0).value.sheets }} sheets.
  - name: published
    user: 'Publish and print'
    after: [publish, print]
    text: It is published under {{ (index .results.publish 0).value.sha256 }}, and a print is {{ (index .results.print 0).value.status }}.
`

// request asks for what a person must agree to, and for what takes long.
func request(line string) string { return "Publish and print this line: " + line }

// The answers to it that are right: when the line is published, and when its print is ready.
func rightPublished(line string) string {
	return "It is published under " + digest(line) + ", and a print is ordered."
}

func rightPrinted(sheets int) string { return fmt.Sprintf("The print is ready on %d sheets.", sheets) }

// question asks about files. Their names are JSON texts, one a line: any name can be said that way.
func question(files []File) string {
	var b strings.Builder
	b.WriteString("How many words and bytes, and which SHA-256, have these files?")
	for _, f := range files {
		var name strings.Builder
		enc := json.NewEncoder(&name)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(f.Path)
		b.WriteString("\n  " + strings.TrimSuffix(name.String(), "\n"))
	}
	return b.String()
}

// rightAnswer is the answer that is true of files.
func rightAnswer(files []File) string {
	var b strings.Builder
	words, size := 0, 0
	for _, f := range files {
		fmt.Fprintf(&b, "%s: %d words, %d bytes, SHA-256 %s\n", f.Path, f.Words, f.Bytes, f.SHA256)
		words, size = words+f.Words, size+f.Bytes
	}
	fmt.Fprintf(&b, "Together: %d words, %d bytes.", words, size)
	return b.String()
}
