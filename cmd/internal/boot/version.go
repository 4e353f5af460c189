package boot

import "runtime/debug"

// version is set by releases: -ldflags "-X github.com/toolfabric/toolfabric/cmd/internal/boot.version=v1.2.3".
var version string

// Version is the release, else what the Go command knows of the build.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
