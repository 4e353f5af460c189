// Package httptool makes a tool of an HTTP endpoint, and a toolset of an OpenAPI document.
//
// An endpoint is a method and a URL with places for arguments. Scheme, host and port are the operator's: a value can fill
// one segment of a path, one value of the query, one header or the body, and never reaches beyond it. Credentials are
// named, as ${env:NAME} or ${file:PATH}, and stay out of declarations, logs, errors and answers.
//
// Requests reach public addresses, and others only where Network allows them. The address is checked when it is dialled,
// after the name was resolved, for each connection of each redirect. Proxies of the environment are not used. Sizes of
// requests, answers and documents are bounded; time is bounded by the timeout of the call.
//
// It does not guard against the endpoint itself: what that answers is data that a model reads.
package httptool
