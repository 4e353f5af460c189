// Package gemini asks Gemini through Google's SDK and keeps what the SDK loses.
//
// Signatures, the order of calls and the ids of calls come back as the provider sent them. Names go out as they are:
// protocol.CheckName allows only what Gemini allows. Retries happen here and nowhere else.
//
// Numbers: the SDK decodes and encodes arguments and results as float64, so an integer of 2^53 or more may be rounded
// without a word. Towards Gemini such integers are sent as text. From Gemini, a parameter whose schema says
// {"type":"integer","format":"int64"} (or uint64) is declared as text and turned back into exact digits; any other
// integer of that size is listed under model.InexactArgs, for the caller to refuse. Nothing is rounded in silence.
//
// Schemas: declarations go out as parametersJsonSchema only, cut down to what Gemini reads: references are written out,
// circular ones to a bounded depth, constants and enums become enums of text (and the model's text becomes the value
// again), required names only what exists. What is cut is not lost: the original validates the arguments before the tool
// runs. A tool that cannot be declared is left out with a warning.
package gemini
