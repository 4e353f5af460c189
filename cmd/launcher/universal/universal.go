// Package universal chooses among several ways to run an agent by the first argument.
package universal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolfabric/toolfabric/cmd/launcher"
)

// NewLauncher chooses among sublaunchers by their keywords. Without one in front of the arguments it is the first.
func NewLauncher(sublaunchers ...launcher.SubLauncher) launcher.Launcher { return choice(sublaunchers) }

type choice []launcher.SubLauncher

func (c choice) Execute(ctx context.Context, config *launcher.Config, args []string) error {
	if len(c) == 0 {
		return errors.New("there is nothing to launch: universal.NewLauncher was given no sublauncher")
	}
	chosen := c[0]
	if len(args) > 0 {
		for _, one := range c {
			if one.Keyword() == args[0] {
				chosen, args = one, args[1:]
				break
			}
		}
	}
	rest, err := chosen.Parse(args)
	if err == nil {
		err = ErrorOnUnparsedArgs(rest)
	}
	if err != nil {
		return err
	}
	if config == nil || config.AgentLoader == nil {
		return errors.New("launcher.Config.AgentLoader is required: agent.NewSingleLoader(yourAgent)")
	}
	return chosen.Run(ctx, config)
}

func (c choice) CommandLineSyntax() string {
	var b strings.Builder
	b.WriteString("Arguments: one of the following words and what belongs to it; without a word it is the first.\n")
	for _, one := range c {
		fmt.Fprintf(&b, "  %s - %s\n", one.Keyword(), one.SimpleDescription())
	}
	for _, one := range c {
		if syntax := one.CommandLineSyntax(); syntax != "" {
			fmt.Fprintf(&b, "\n%s\n%s", one.Keyword(), syntax)
		}
	}
	return b.String()
}

// ErrorOnUnparsedArgs is an error that names the arguments, if there are any.
func ErrorOnUnparsedArgs(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown arguments: %s", strings.Join(args, " "))
	}
	return nil
}
