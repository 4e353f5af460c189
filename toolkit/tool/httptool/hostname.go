package httptool

import (
	"fmt"
	"net/netip"
	"strings"
)

// checkHostName refuses hosts that are read differently by different parsers: numbers that some resolvers take for an
// address (2130706433, 0x7f.1, 0177.0.0.1, 127.1), names that are not ASCII, zones of IPv6.
func checkHostName(host string) error {
	if host == "" {
		return fmt.Errorf("the host is empty")
	}
	if strings.Contains(host, ":") {
		if addr, err := netip.ParseAddr(host); err != nil || addr.Zone() != "" {
			return fmt.Errorf("%q is no IPv6 address, or one with a zone", host)
		}
		return nil
	}
	if len(host) > 253 {
		return fmt.Errorf("the host has %d bytes, more than 253", len(host))
	}
	for _, r := range host {
		if r != '-' && r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return fmt.Errorf("the host %q holds %q; write an international name as xn--...", host, r)
		}
	}
	name := strings.TrimSuffix(host, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" || strings.Contains(name, "..") {
		return fmt.Errorf("%q is no host", host)
	}
	if isNumber(last) {
		if _, err := netip.ParseAddr(host); err != nil {
			return fmt.Errorf("%q is an address to some and a name to others; write the address as four decimal numbers", host)
		}
	}
	return nil
}

// isNumber reports whether a label makes a host an address in the eyes of the URL standard of WHATWG: decimal, octal or
// hexadecimal digits.
func isNumber(label string) bool {
	digits, isDigit := label, func(r rune) bool { return r >= '0' && r <= '9' }
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		digits, isDigit = hex, func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
	}
	return strings.IndexFunc(digits, func(r rune) bool { return !isDigit(r) }) < 0
}
