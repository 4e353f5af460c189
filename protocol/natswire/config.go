package natswire

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// MinServerVersion is the oldest nats-server that has all that the streams need.
const MinServerVersion = "2.14.4"

// Config says where the broker is and who connects. The zero value connects to nats://127.0.0.1:4222 without credentials.
type Config struct {
	// URL is one or more server addresses, separated by commas. Empty takes the context's, then nats://127.0.0.1:4222.
	URL string
	// Creds is a credentials file. Empty takes the context's.
	Creds string
	// Context is the name of a NATS CLI context, or the path of its file. What this Config names itself wins over it.
	Context string
	// Name is shown by the server's monitoring.
	Name string
	// Namespace is the first token of all subjects: 1 to 16 of a-z and 0-9. Empty is DefaultNamespace.
	Namespace string
	// InboxPrefix begins the subjects on which this connection awaits answers. Empty is the context's, then "_INBOX_" and the
	// user's name when there is one, so that users can be kept from each other's answers, else "_INBOX".
	InboxPrefix string
	// InProcess connects to a server in this process without a socket; URL is not used then.
	InProcess nats.InProcessConnProvider
	// Listener hears what happens to the connection, in order, on one goroutine. It must not block. Nil is nobody.
	Listener func(Notice)
}

// A first connection is tried this often, about two seconds in all, before it is an error.
const connectTries = 5

// Connect opens a connection. It returns code bus_unreachable when no server answers after a few tries, auth_failed when the
// credentials are refused, server_too_old for a server before MinServerVersion, unsupported when the account has no
// JetStream, forbidden when it may not use its inbox, and usage for a Config that makes no sense.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	names, err := NewNames(cfg.Namespace)
	if err != nil {
		return nil, err
	}
	who, err := resolve(cfg)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		names:   names,
		prefix:  who.inboxPrefix + ".",
		listen:  cfg.Listener,
		pullers: make(map[*puller]struct{}),
	}
	c.replies = newReplies(c.newInbox() + ".")
	options := append(who.options,
		nats.Name(cfg.Name),
		nats.CustomInboxPrefix(who.inboxPrefix),
		// What cannot be sent now must fail now: a publish that failed and lands after the reconnect breaks every fence.
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.Timeout(2*time.Second),
		nats.FlusherTimeout(callTimeout), // a peer that takes no bytes must not hold a publish beyond its deadline
		nats.PingInterval(10*time.Second),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(c.onDisconnect),
		nats.ReconnectHandler(c.onReconnect),
		nats.ClosedHandler(c.onClosed),
		nats.ErrorHandler(c.onError),
	)
	if cfg.InProcess != nil {
		options = append(options, nats.InProcessServer(cfg.InProcess))
	}
	if c.nc, err = dial(ctx, who.url, options); err != nil {
		return nil, err
	}
	if err := c.open(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func dial(ctx context.Context, servers string, options []nats.Option) (*nats.Conn, error) {
	for try := 1; ; try++ {
		nc, err := nats.Connect(servers, options...)
		switch {
		case err == nil:
			return nc, nil
		case isAuthError(err):
			return nil, protocol.Wrap(err, protocol.CodeAuth, "%s refused the credentials", Redact(servers))
		case isConfigError(err):
			if _, malformed := errors.AsType[*url.Error](err); malformed { // its text has the whole address
				err = errors.New("that is no address of a server: write nats://HOST:PORT, and special characters of a password as %XX")
			}
			return nil, protocol.Wrap(err, protocol.CodeUsage, "connect to %s", Redact(servers))
		case try == connectTries:
			return nil, protocol.Wrap(err, protocol.CodeUnreachable, "no connection to %s after %d tries", Redact(servers), try)
		}
		if err := pause(ctx, time.Duration(try*try)*60*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func isAuthError(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) ||
		errors.Is(err, nats.ErrAccountAuthExpired)
}

// isConfigError reports whether trying again is of no use: a file is missing or an address is malformed.
func isConfigError(err error) bool {
	var bad *url.Error
	text := err.Error()
	return errors.As(err, &bad) || strings.Contains(text, "no such file") || strings.Contains(text, "permission denied") ||
		strings.Contains(text, "nkey") || strings.Contains(text, "credentials")
}

// open makes the connection usable: replies arrive, the server is new enough and has JetStream.
func (c *Conn) open(ctx context.Context) error {
	if version := c.nc.ConnectedServerVersion(); !newEnough(version) {
		return protocol.Errorf(protocol.CodeServerTooOld, "nats-server %s at %s is too old: version %s or newer is needed", version, c.ServerURL(), MinServerVersion)
	}
	if !c.nc.HeadersSupported() {
		return protocol.Errorf(protocol.CodeUnsupported, "the server at %s has headers turned off", c.ServerURL())
	}
	subject := c.replies.prefix + "*"
	sub, err := c.nc.Subscribe(subject, c.replies.deliver)
	if err != nil {
		return protocol.Wrap(err, protocol.CodeUnreachable, "subscribe to the inbox")
	}
	// Every answer of every call passes here; the calls themselves are the bound.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return protocol.Wrap(err, protocol.CodeUnreachable, "subscribe to the inbox")
	}
	c.sub = sub
	if err := c.settled(subject); err != nil {
		return err
	}
	err = c.checkJetStream(ctx)
	if protocol.CodeOf(err) == protocol.CodeUnsupported {
		return protocol.Wrap(err, protocol.CodeUnsupported, "the server at %s: %s", c.ServerURL(), protocol.ProblemOf(err).Message)
	}
	return err
}

// checkJetStream asks for something small. Whoever may not ask is told only when it matters: workers need no such right.
func (c *Conn) checkJetStream(ctx context.Context) error {
	reply, err := c.ask(ctx, encode(Msg{Subject: apiInfo}))
	if protocol.CodeOf(err) == protocol.CodeForbidden {
		return nil
	}
	if err != nil {
		return err
	}
	if noResponders(reply) {
		return errNoJetStream(nats.ErrNoResponders)
	}
	return readAPI(reply.Data, "ask for the account", nil)
}

// newEnough compares with MinServerVersion. A version that is no version is taken for a build of tomorrow.
func newEnough(version string) bool {
	number, suffix, _ := strings.Cut(version, "-")
	have, minimum := strings.Split(number, "."), strings.Split(MinServerVersion, ".")
	for i := range minimum {
		if i >= len(have) {
			return true
		}
		h, err := strconv.Atoi(have[i])
		if err != nil {
			return true
		}
		m, _ := strconv.Atoi(minimum[i])
		if h != m {
			return h > m
		}
	}
	return suffix == "" // 2.14.4-RC.1 comes before 2.14.4
}

func reconnectDelay(tries int) time.Duration {
	d := min(50*time.Millisecond<<min(tries, 6), 2*time.Second)
	return d/2 + rand.N(d/2+1)
}
