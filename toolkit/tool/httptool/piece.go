package httptool

import (
	"fmt"
	"strings"
)

// piece is a part of a URL or of a header: fixed text, an argument of the call, or a credential.
type piece struct {
	literal  string
	argument string // the property that fills it
	secret   string // env:NAME or file:PATH
}

// parsePieces reads text with places: {name} for an argument, ${env:NAME} and ${file:PATH} for a credential.
func parsePieces(text string) ([]piece, error) {
	var pieces []piece
	for text != "" {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			if strings.Contains(text, "}") {
				return nil, fmt.Errorf("%q has a brace too many; an argument is written {name}", text)
			}
			return append(pieces, piece{literal: text}), nil
		}
		fixed := text[:open]
		if strings.Contains(fixed, "}") {
			return nil, fmt.Errorf("%q has a brace too many; an argument is written {name}", text)
		}
		end := strings.IndexByte(text[open:], '}')
		if end < 0 {
			return nil, fmt.Errorf("%q lacks a closing brace", text)
		}
		name := text[open+1 : open+end]
		text = text[open+end+1:]
		p := piece{argument: name}
		if before, ok := strings.CutSuffix(fixed, "$"); ok {
			fixed, p = before, piece{secret: name}
			if kind, what, _ := strings.Cut(name, ":"); what == "" || kind != "env" && kind != "file" {
				return nil, fmt.Errorf("${%s} is no credential: write ${env:NAME} or ${file:PATH}", name)
			}
		} else if name == "" || strings.ContainsAny(name, "{\" :,?/") {
			return nil, fmt.Errorf("{%s} is no argument: write {name}", name)
		}
		if fixed != "" {
			pieces = append(pieces, piece{literal: fixed})
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// isArgument reports whether pieces are one argument and nothing else.
func isArgument(pieces []piece) bool { return len(pieces) == 1 && pieces[0].argument != "" }
