package httptool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// Network is what requests may reach. The zero value reaches every public address and no other.
type Network struct {
	// Allow lists what may be reached although it is not public: addresses (127.0.0.1), blocks of them (10.2.0.0/16), and
	// host names (billing.internal), whose private and loopback addresses are then let through. Link-local addresses,
	// those of cloud metadata services and multicast are reached only where an address or block names them.
	Allow []string
	// Resolver looks names up; nil is the system's.
	Resolver *net.Resolver
	// TLS holds further roots, or a client's certificate; nil is the system's roots and no certificate. It is copied.
	TLS *tls.Config
}

const (
	dialTimeout    = 10 * time.Second
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 64 << 10
)

// guard decides about addresses. Immutable.
type guard struct {
	blocks []netip.Prefix
	hosts  map[string]bool
}

// blockedError says that an address may not be reached.
type blockedError struct{ what, address string }

func (e *blockedError) Error() string {
	return e.what + " is not public, and may not be reached: whoever serves the tool can allow it, with --allow " + e.address + " or allow in its file"
}

func newGuard(allow []string) (*guard, error) {
	g := &guard{hosts: map[string]bool{}}
	for _, entry := range allow {
		if p, err := netip.ParsePrefix(entry); err == nil && !p.Addr().Is4In6() {
			g.blocks = append(g.blocks, p.Masked())
			continue
		}
		if a, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil && a.Zone() == "" {
			a = a.Unmap()
			g.blocks = append(g.blocks, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		if err := checkHostName(entry); err != nil || strings.Contains(entry, ":") {
			return nil, fmt.Errorf("allow: %q is no address, no block such as 10.0.0.0/8 and no host name", entry)
		}
		g.hosts[hostKey(entry)] = true
	}
	return g, nil
}

func hostKey(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// checkHost refuses a host that is an address which may not be reached, or a name of the machine itself. Other names are
// judged when they are resolved.
func (g *guard) checkHost(host string) error {
	if err := checkHostName(host); err != nil {
		return err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return g.checkAddr(host, a)
	}
	key := hostKey(host)
	if (key == "localhost" || strings.HasSuffix(key, ".localhost")) && !g.hosts[key] && len(g.blocks) == 0 {
		return &blockedError{host, host}
	}
	return nil
}

// checkAddr judges an address that host resolved to.
func (g *guard) checkAddr(host string, a netip.Addr) error {
	a = a.Unmap().WithZone("")
	kind := classify(a)
	if kind == public {
		return nil
	}
	for _, b := range g.blocks {
		if b.Contains(a) {
			return nil
		}
		if inner, ok := translated(a); ok && b.Contains(inner) {
			return nil
		}
	}
	if kind == private && g.hosts[hostKey(host)] {
		return nil
	}
	if a.String() == host {
		return &blockedError{host, host}
	}
	return &blockedError{fmt.Sprintf("%s (%s)", host, a), a.String()}
}

// dial connects to an address that was checked after its name was resolved: what is checked is what is dialled, so that a
// name cannot be one address to the check and another to the connection.
func (n *Network) dial(g *guard) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		d := net.Dialer{
			Timeout: dialTimeout, Resolver: n.Resolver,
			ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
				to, err := netip.ParseAddrPort(resolved)
				if err != nil {
					return errors.New("the resolved address cannot be read")
				}
				return g.checkAddr(host, to.Addr())
			},
		}
		return d.DialContext(ctx, network, address)
	}
}

func (n *Network) transport(g *guard) *http.Transport {
	t := &http.Transport{
		DialContext: n.dial(g), ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: idleTimeout,
		MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if n.TLS != nil {
		t.TLSClientConfig = n.TLS.Clone()
	}
	return t
}
