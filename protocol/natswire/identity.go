package natswire

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/toolfabric/toolfabric/protocol"
)

// identity is where and as whom to connect, after the context was read.
type identity struct {
	url         string
	inboxPrefix string
	options     []nats.Option
}

// natsContext is the part of a NATS CLI context that we use.
type natsContext struct {
	URL         string `json:"url"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"` // a seed file
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	TLSFirst    bool   `json:"tls_first"`
	UserJWT     string `json:"user_jwt"`
	UserSeed    string `json:"user_seed"`
	InboxPrefix string `json:"inbox_prefix"`
	JSDomain    string `json:"jetstream_domain"`
	JSPrefix    string `json:"jetstream_api_prefix"`
}

func resolve(cfg Config) (identity, error) {
	var nctx natsContext
	if cfg.Context != "" {
		var err error
		if nctx, err = readContext(cfg.Context); err != nil {
			return identity{}, err
		}
	}
	who := identity{url: cmp.Or(cfg.URL, nctx.URL, nats.DefaultURL)}
	user := userOfURL(who.url)
	add := func(o nats.Option) { who.options = append(who.options, o) }
	switch creds := expand(cmp.Or(cfg.Creds, nctx.Creds)); {
	case creds != "":
		data, err := os.ReadFile(creds)
		if err != nil {
			return identity{}, protocol.Wrap(err, protocol.CodeUsage, "read the credentials %s", creds)
		}
		add(nats.UserCredentials(creds))
		user = userOfJWT(string(data))
	case nctx.UserJWT != "" && nctx.UserSeed != "":
		add(nats.UserJWTAndSeed(nctx.UserJWT, nctx.UserSeed))
		user = userOfJWT(nctx.UserJWT)
	case nctx.NKey != "":
		option, public, err := nkeyOption(expand(nctx.NKey))
		if err != nil {
			return identity{}, err
		}
		add(option)
		user = public
	case nctx.User != "":
		add(nats.UserInfo(nctx.User, nctx.Password))
		user = nctx.User
	case nctx.Token != "":
		add(nats.Token(nctx.Token))
	}
	if nctx.Cert != "" || nctx.Key != "" {
		add(nats.ClientCert(expand(nctx.Cert), expand(nctx.Key)))
	}
	if nctx.CA != "" {
		add(nats.RootCAs(expand(nctx.CA)))
	}
	if nctx.TLSFirst {
		add(nats.TLSHandshakeFirst())
	}
	who.inboxPrefix = cmp.Or(cfg.InboxPrefix, nctx.InboxPrefix, inboxOf(user))
	return who, nil
}

// inboxOf keeps each user's answers apart; a name that is no token cannot.
func inboxOf(user string) string {
	if protocol.CheckID(user) != nil {
		return "_INBOX"
	}
	return "_INBOX_" + user
}

func readContext(name string) (natsContext, error) {
	path := name
	if !strings.ContainsRune(name, filepath.Separator) && !strings.HasSuffix(name, ".json") {
		dir := os.Getenv("XDG_CONFIG_HOME")
		if dir == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return natsContext{}, protocol.Wrap(err, protocol.CodeUsage, "NATS context %q: no home directory", name)
			}
			dir = filepath.Join(home, ".config")
		}
		path = filepath.Join(dir, "nats", "context", name+".json")
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return natsContext{}, protocol.Wrap(err, protocol.CodeUsage, "NATS context %q: no file %s; see `nats context ls`", name, path)
	}
	if err != nil {
		return natsContext{}, protocol.Wrap(err, protocol.CodeUsage, "NATS context %q", name)
	}
	var nctx natsContext
	if err := json.Unmarshal(data, &nctx); err != nil {
		return natsContext{}, protocol.Wrap(err, protocol.CodeUsage, "NATS context %s is not JSON", path)
	}
	if nctx.JSPrefix != "" || nctx.JSDomain != "" {
		return natsContext{}, protocol.Errorf(protocol.CodeUnsupported, "NATS context %s names a JetStream domain or prefix: connect to a server of that domain instead", path)
	}
	return nctx, nil
}

func expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

func nkeyOption(path string) (nats.Option, string, error) {
	option, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		return nil, "", protocol.Wrap(err, protocol.CodeUsage, "read the nkey %s", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, "", protocol.Wrap(err, protocol.CodeUsage, "read the nkey %s", path)
	}
	defer clear(data)
	pair, err := nkeys.ParseDecoratedNKey(data)
	if err != nil {
		return nil, "", protocol.Wrap(err, protocol.CodeUsage, "read the nkey %s", path)
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil {
		return nil, "", protocol.Wrap(err, protocol.CodeUsage, "read the nkey %s", path)
	}
	return option, public, nil
}

func userOfURL(servers string) string {
	first, _, _ := strings.Cut(servers, ",")
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil || u.User == nil {
		return ""
	}
	if _, ok := u.User.Password(); !ok {
		return "" // a token
	}
	return u.User.Username()
}

// userOfJWT reads the name in the claims of a user JWT, alone or inside a credentials file. Empty when there is none.
func userOfJWT(text string) string {
	if _, rest, ok := strings.Cut(text, "-----BEGIN NATS USER JWT-----"); ok {
		text, _, _ = strings.Cut(rest, "------END")
	}
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 {
		return ""
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(data, &claims) != nil {
		return ""
	}
	return claims.Name
}
