package turn

import (
	"fmt"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

const namesShown = 20

// unknownTool tells a model which tools there are when it made one up, the closest names first.
func unknownTool(name string, offered []string) string {
	if r := []rune(name); len(r) > protocol.MaxNameLen {
		name = string(r[:protocol.MaxNameLen])
	}
	if len(offered) == 0 {
		return fmt.Sprintf("there is no tool %q, nor any other: answer without tools", name)
	}
	text := fmt.Sprintf("there is no tool %q.", name)
	if meant := protocol.Meant(name, offered); meant != "" {
		text += fmt.Sprintf(" Did you mean %s?", meant)
	}
	names := protocol.Closest(name, offered)
	more := ""
	if n := len(names) - namesShown; n > 0 {
		names, more = names[:namesShown], fmt.Sprintf(" and %d more", n)
	}
	return text + " Available, closest first: " + strings.Join(names, ", ") + more
}
