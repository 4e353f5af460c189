package natswire

import (
	"net/url"
	"strings"
)

// Redact is a list of server addresses as it may be shown and logged: the word CREDENTIALS stands for users, passwords and
// tokens.
func Redact(servers string) string {
	list := strings.Split(servers, ",")
	for _, s := range list {
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		if _, err := url.Parse(strings.TrimSpace(s)); err != nil { // the comma may be one of a password
			list = []string{servers}
			break
		}
	}
	for i, s := range list {
		s = strings.TrimSpace(s)
		if at := strings.LastIndexByte(s, '@'); at >= 0 {
			shown := "CREDENTIALS" + s[at:]
			if scheme, _, ok := strings.Cut(s[:at], "://"); ok && !strings.Contains(scheme, ":") {
				shown = scheme + "://" + shown
			}
			s = shown
		}
		list[i] = s
	}
	return strings.Join(list, ",")
}
