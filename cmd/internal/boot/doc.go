// Package boot is what every command does first: find its settings (flag, then TOOLFABRIC_* environment, then settings
// file, then default), write logs to stderr, export telemetry when the OTEL_* environment asks for it, and connect.
package boot
