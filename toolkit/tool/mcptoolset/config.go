package mcptoolset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Defaults of Config.
const (
	DefaultTimeout     = 10 * time.Minute
	DefaultIdle        = time.Minute
	DefaultConnect     = 30 * time.Second
	DefaultElicitLimit = 5 * time.Minute
	DefaultMaxTools    = 1000
	DefaultMaxResult   = 20 << 20
)

// Config says where the server is and how its tools are treated. One of Transport, Command and Endpoint is needed.
type Config struct {
	// Client is nil, or a client of the caller's own. Then elicitation is that client's handler's business, and changes of
	// the tool list are heard only from servers before the protocol 2026-07-28. A client serves one toolset.
	Client *mcp.Client
	// Transport is any of the SDK's. It is connected again after a loss: a CommandTransport's command is started anew, a
	// transport of another kind must bear another Connect.
	Transport mcp.Transport
	// ToolFilter decides by a tool's final name; nil lets all through.
	ToolFilter tool.Predicate
	// Only names the tools that are offered, as the server calls them; empty is all.
	Only []string
	// RequireConfirmation and its provider are those of tool.WithConfirmation. The provider replaces the flag, and what
	// the server says about its tool.
	RequireConfirmation         bool
	RequireConfirmationProvider tool.ConfirmationProvider

	// Command is the program of a server and its arguments; no shell. It gets PATH, HOME and LANG of this process and Env, as
	// NAME=value, and a process group of its own, which is killed as a whole when it is not needed any more. What it writes
	// to its standard error goes to Logger.
	Command []string
	Env     []string
	Dir     string // working directory; empty is this process's

	// Endpoint is the URL of a server: streamable HTTP, or the older HTTP+SSE when SSE is set. Header, Token and OAuth go with
	// each request to Endpoint's own scheme and host, and nowhere else; redirects to another one are refused.
	Endpoint string
	SSE      bool
	Header   http.Header
	Token    func(context.Context) (string, error) // bearer token, asked for at each request; nil is none
	OAuth    auth.OAuthHandler                     // of streamable HTTP; nil is none

	// Prefix and "_" stand before each tool's name; empty is none. It keeps apart what two servers call alike.
	Prefix string
	// Settings are those of each tool. The zero Effect is at_most_once; the zero Timeout is DefaultTimeout.
	Settings tool.Settings
	// Effects are the effect classes of single tools, by the server's own name. They are the operator's last word.
	Effects map[string]tool.Effect
	// Trust says that the server's readOnlyHint and idempotentHint may be believed, where Settings and Effects say nothing.
	Trust bool
	// AllowDestructive says that nobody is asked before calls of tools that the server itself calls destructive.
	AllowDestructive bool

	Idle      time.Duration // of a call without progress; 0 is DefaultIdle. Timeout bounds the whole.
	Connect   time.Duration // of starting and initialising the server, and of a call's wait for that; 0 is DefaultConnect
	MaxTools  int           // more are left out; 0 is DefaultMaxTools
	MaxResult int           // bytes of one message of the server; 0 is DefaultMaxResult, at most tool.MaxKept

	// Elicit asks a person what a server before the protocol 2026-07-28 asks in the middle of a call; ctx ends with ElicitLimit
	// (0 is DefaultElicitLimit) and with the call. Nil answers each question with cancel.
	Elicit      func(ctx context.Context, q Question) (*mcp.ElicitResult, error)
	ElicitLimit time.Duration

	Logger *slog.Logger // nil is silent
}

// New checks cfg; it connects to nothing. The set is a tool.Changing, an io.Closer and safe for concurrent use. New returns
// an *Error of code usage.
func New(cfg Config) (tool.Toolset, error) {
	if err := cfg.validate(); err != nil {
		return nil, protocol.Errorf(protocol.CodeUsage, "an MCP toolset: %s", err)
	}
	return newSet(cfg), nil
}

func (c *Config) validate() error {
	ways := 0
	for _, there := range []bool{c.Transport != nil, len(c.Command) > 0, c.Endpoint != ""} {
		if there {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("it needs exactly one of Transport, Command and Endpoint")
	}
	if len(c.Command) > 0 && c.Command[0] == "" {
		return errors.New("the command is empty")
	}
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.User != nil { // not shown: it may hold a password
			return errors.New("the endpoint is no URL, or one with a user or a password: these go into Header or Token")
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("the endpoint %q is no http or https URL", c.Endpoint)
		}
	} else if c.SSE || len(c.Header) > 0 || c.Token != nil || c.OAuth != nil {
		return errors.New("SSE, Header, Token and OAuth go with Endpoint")
	}
	if c.SSE && c.OAuth != nil {
		return errors.New("OAuth goes with streamable HTTP, not with SSE")
	}
	for _, kv := range c.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return fmt.Errorf("%q is no NAME=value", kv)
		}
	}
	if c.Prefix != "" {
		if err := protocol.CheckName(c.Prefix); err != nil {
			return fmt.Errorf("the prefix: %s", protocol.ProblemOf(err).Message)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Effects)) {
		if err := checkEffect(c.Effects[name]); err != nil {
			return fmt.Errorf("tool %s: %w", name, err)
		}
	}
	if err := checkEffect(c.Settings.Effect); err != nil {
		return err
	}
	if c.Idle < 0 || c.Connect < 0 || c.ElicitLimit < 0 || c.MaxTools < 0 || c.MaxResult < 0 || c.MaxResult > tool.MaxKept {
		return fmt.Errorf("limits are not negative, and a result has at most %d bytes", tool.MaxKept)
	}
	def(&c.Settings.Timeout, DefaultTimeout)
	def(&c.Idle, DefaultIdle)
	def(&c.Connect, DefaultConnect)
	def(&c.ElicitLimit, DefaultElicitLimit)
	def(&c.MaxTools, DefaultMaxTools)
	def(&c.MaxResult, DefaultMaxResult)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func checkEffect(e tool.Effect) error {
	switch e {
	case "", tool.Read, tool.Idempotent, tool.AtMostOnce:
		return nil
	}
	return fmt.Errorf("unknown effect %q: it is read, idempotent or at_most_once", e)
}

// place is how log and errors name the server. It holds no credentials: arguments of a command may.
func (c *Config) place() string {
	switch {
	case c.Endpoint != "":
		u, err := url.Parse(c.Endpoint)
		if err != nil {
			return "endpoint"
		}
		return u.Scheme + "://" + u.Host + u.Path
	case len(c.Command) > 0:
		return c.Command[0]
	}
	return fmt.Sprintf("%T", c.Transport)
}
