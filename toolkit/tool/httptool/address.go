package httptool

import "net/netip"

// reach is who an address belongs to.
type reach int

// The kinds of address.
const (
	public  reach = iota
	private       // of this machine or its networks: a host name that is allowed opens it
	special       // link-local, cloud metadata, multicast, reserved: only its own entry opens it
)

// Blocks that are not public, from IANA's special-purpose registries, and services of clouds on addresses that look public.
var (
	privateBlocks = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "::1/128", "fc00::/7")
	specialBlocks = prefixes(
		"0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4",
		"100.100.100.200/32", "168.63.129.16/32", // metadata of Alibaba Cloud, and of Azure
		"fd00:ec2::/32", "fd20:ce::254/128", // metadata of AWS, and of Google Cloud
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", // Teredo and its kin, documentation, 6to4
	)
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

func within(blocks []netip.Prefix, a netip.Addr) bool {
	for _, b := range blocks {
		if b.Contains(a) {
			return true
		}
	}
	return false
}

// classify judges an address that is no IPv4 address in the form of IPv6. What NAT64 makes of an IPv4 address is as public
// as that is.
func classify(a netip.Addr) reach {
	inner, isTranslated := translated(a)
	switch {
	case !a.IsValid() || within(specialBlocks, a):
		return special
	case within(privateBlocks, a):
		return private
	case isTranslated:
		return classify(inner)
	case a.Is6() && !globalUnicast.Contains(a): // link-local, multicast, IPv4-compatible and what nobody has been given
		return special
	}
	return public
}

// translated is the IPv4 address inside one of NAT64 (RFC 6052).
func translated(a netip.Addr) (netip.Addr, bool) {
	if !nat64.Contains(a) {
		return a, false
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:])), true
}
