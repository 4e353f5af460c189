// Package full has every way to run an agent that there is.
package full

import (
	"context"
	"errors"

	"github.com/toolfabric/toolfabric/cmd/launcher"
	"github.com/toolfabric/toolfabric/cmd/launcher/console"
	"github.com/toolfabric/toolfabric/cmd/launcher/universal"
)

// NewLauncher talks in the terminal, by the word console or none. The word web, which ADK has too, is refused with what to use instead.
func NewLauncher() launcher.Launcher {
	return universal.NewLauncher(console.NewLauncher(), web{})
}

var errWeb = errors.New("the web modes (api, webui, a2a) are not part of this version; talk to the agent with console, or set " +
	"TOOLFABRIC_DATA to a directory and use the toolfabric command beside it (run, sessions, approvals, each with --data)")

// web refuses what ADK's web launcher does.
type web struct{}

func (web) Keyword() string                             { return "web" }
func (web) Parse([]string) ([]string, error)            { return nil, errWeb }
func (web) CommandLineSyntax() string                   { return "" }
func (web) SimpleDescription() string                   { return "not part of this version" }
func (web) Run(context.Context, *launcher.Config) error { return errWeb }
