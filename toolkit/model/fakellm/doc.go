// Package fakellm serves a script over Gemini's HTTP protocol, so that tests, demos and people without a key drive the
// real adapter and SDK. It refuses what Gemini refuses, records what it was asked, and counts.
//
// It serves POST /v1beta/models/{model}:generateContent and :streamGenerateContent?alt=sse for any model name and any key.
package fakellm
