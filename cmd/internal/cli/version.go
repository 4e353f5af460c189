package cli

import (
	"context"
	"fmt"
	"runtime"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
)

// versions are those of this build.
type versions struct {
	Version   string `json:"version"`
	Protocol  int    `json:"protocol"`
	Go        string `json:"go"`
	Platform  string `json:"platform"`
	NATS      string `json:"nats_client"`
	Embedded  string `json:"nats_server_embedded"`
	MinServer string `json:"nats_server_min"`
}

func thisBuild() versions {
	return versions{
		Version: boot.Version(), Protocol: protocol.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		NATS: nats.Version, Embedded: (*embed.Server)(nil).Version(), MinServer: natswire.MinServerVersion,
	}
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of this build", Args: cobra.NoArgs,
		Example: "  toolfabric version\n  toolfabric version --output json",
		RunE: a.do(func(context.Context, []string) error {
			v := thisBuild()
			return a.print(v, func() error {
				_, err := fmt.Fprintf(a.out, "toolfabric %s\nprotocol %d, %s, %s\nnats.go %s, embedded nats-server %s, needs nats-server %s or newer\n",
					v.Version, v.Protocol, v.Go, v.Platform, v.NATS, v.Embedded, v.MinServer)
				return err
			})
		}),
	}
}
