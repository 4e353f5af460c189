package boot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/toolfabric/toolfabric/cmd/internal/strictyaml"
	"github.com/toolfabric/toolfabric/protocol"
)

// Settings are what all commands share.
type Settings struct {
	NATS      string // server URL; empty takes the context's, then what up left in Data, then nats://127.0.0.1:4222
	Creds     string // credentials file
	Context   string // NATS CLI context
	Namespace string // first token of all subjects
	Data      string // directory of the embedded server, and of the file that says where it listens
	LogLevel  string // debug, info, warn, error; empty is the command's own
	Output    string // table or json
	Raw       bool   // show text of tools and models as it is
}

// Register adds the settings' flags.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.StringVar(&s.NATS, "nats", "", "NATS server `URL` (default: where up listens, else nats://127.0.0.1:4222)")
	fs.StringVar(&s.Creds, "creds", "", "NATS credentials `FILE`")
	fs.StringVar(&s.Context, "context", "", "NATS context `NAME` of the nats command line")
	fs.StringVar(&s.Namespace, "namespace", "", "first token of all subjects (default tf)")
	fs.StringVar(&s.Data, "data", DefaultData(), "`DIR` where up keeps its data and others find its address")
	fs.StringVar(&s.LogLevel, "log-level", "", "debug, info, warn or error")
	fs.StringVar(&s.Output, "output", "table", "table or json")
	fs.BoolVar(&s.Raw, "raw", false, "show text of tools and models without escaping control characters")
}

// settable are the flags that the environment and the settings file may set too.
var settable = []string{"nats", "creds", "context", "namespace", "data", "log-level", "output", "listen", "sync", "agents"}

// Resolve sets each flag that the command line left alone from the environment (TOOLFABRIC_LOG_LEVEL for log-level) or the
// settings file: TOOLFABRIC_CONFIG, else toolfabric/config.yaml below the user's configuration directory. It returns code
// usage with every fault of the file.
func Resolve(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	file, err := settingsFile(lookup)
	if err != nil {
		return err
	}
	for _, name := range settable {
		f := flags.Lookup(name)
		if f == nil || f.Changed {
			continue
		}
		key := "TOOLFABRIC_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		value, ok := lookup(key)
		from := "environment variable " + key
		if !ok || value == "" {
			if value, ok = file[name]; !ok {
				continue
			}
			from = "key " + name + " of the settings file"
		}
		if err := f.Value.Set(value); err != nil {
			return protocol.Errorf(protocol.CodeUsage, "%s: %v", from, err)
		}
	}
	return nil
}

// Check refuses settings that no command takes.
func (s *Settings) Check() error {
	if s.Output != "table" && s.Output != "json" {
		return protocol.Errorf(protocol.CodeUsage, "--output %q: it is table or json", s.Output)
	}
	if s.LogLevel != "" && !slices.Contains([]string{"debug", "info", "warn", "error"}, s.LogLevel) {
		return protocol.Errorf(protocol.CodeUsage, "--log-level %q: it is debug, info, warn or error", s.LogLevel)
	}
	return nil
}

func settingsFile(lookup func(string) (string, bool)) (map[string]string, error) {
	path, named := lookup("TOOLFABRIC_CONFIG")
	if !named || path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, nil
		}
		path, named = filepath.Join(dir, "toolfabric", "config.yaml"), false
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the settings file cannot be read")
	}
	values := map[string]string{}
	d := strictyaml.Parse(path, text)
	known := map[string]func(ast.Node){}
	for _, name := range settable {
		known[name] = func(n ast.Node) { values[name] = d.Scalar(n) }
	}
	d.Fields(d.Root(), "the settings file", known)
	return values, d.Err()
}

// DefaultData is a directory below the user's own data.
func DefaultData() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "toolfabric")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "toolfabric")
	}
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "toolfabric")
	case "windows":
		return filepath.Join(home, "AppData", "Local", "toolfabric")
	default:
		return filepath.Join(home, ".local", "share", "toolfabric")
	}
}
