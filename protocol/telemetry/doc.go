// Package telemetry is how the parts of Toolfabric are seen in traces: the names of spans and attributes, and trace
// context in message headers and in the log. Names follow the OpenTelemetry conventions for generative AI and messaging;
// what they do not name stands under "toolfabric.".
//
// It promises that nothing a user, a model or a tool said is put on a span unless ContentCapture says so, and knows neither
// the broker nor an exporter.
package telemetry
