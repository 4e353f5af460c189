package httptool

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	minSecret = 4        // a shorter value cannot be told from other text, and so cannot be kept out of answers
	maxSecret = 16 << 10 // in bytes
)

// secrets are the credentials that a tool names. A variable of the environment is read once, a file at each call, so that
// a credential which is replaced there takes effect. Immutable.
type secrets struct {
	dir    string
	values map[string]string // of env:NAME
	files  []string          // file:PATH
}

// readSecrets finds what refs name. Each must be there when the tool is made.
func readSecrets(refs []string, dir string, lookup func(string) (string, bool)) (*secrets, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	s := &secrets{dir: dir, values: map[string]string{}}
	for _, ref := range refs {
		name, ok := strings.CutPrefix(ref, "env:")
		if !ok {
			if _, err := s.readFile(ref); err != nil {
				return nil, err
			}
			s.files = append(s.files, ref)
			continue
		}
		value, ok := lookup(name)
		if !ok {
			return nil, fmt.Errorf("environment variable %s, which a credential is taken from, is not set", name)
		}
		if err := checkSecret(value); err != nil {
			return nil, fmt.Errorf("environment variable %s %w", name, err)
		}
		s.values[ref] = value
	}
	return s, nil
}

func checkSecret(value string) error {
	switch {
	case len(value) < minSecret:
		return fmt.Errorf("has %d bytes: a credential has at least %d, or it could not be kept out of answers", len(value), minSecret)
	case len(value) > maxSecret:
		return fmt.Errorf("has more than %d bytes", maxSecret)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("holds a line end or another control character")
	}
	return nil
}

func (s *secrets) readFile(ref string) (string, error) {
	path := strings.TrimPrefix(ref, "file:")
	at := path
	if !filepath.IsAbs(at) {
		at = filepath.Join(s.dir, at)
	}
	f, err := os.Open(at)
	if err != nil {
		return "", fmt.Errorf("the credential in the file %s cannot be read", path)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+2))
	if err != nil {
		return "", fmt.Errorf("the credential in the file %s cannot be read", path)
	}
	value := strings.TrimRight(string(b), "\r\n")
	if err := checkSecret(value); err != nil {
		return "", fmt.Errorf("the file %s %w", path, err)
	}
	return value, nil
}

// opened are the credentials of one call.
type opened struct {
	values  map[string]string
	derived []string // what was made of them, a Basic value say
}

func (s *secrets) open() (*opened, error) {
	if len(s.files) == 0 {
		return &opened{values: s.values}, nil
	}
	o := &opened{values: map[string]string{}}
	for ref, v := range s.values {
		o.values[ref] = v
	}
	for _, ref := range s.files {
		v, err := s.readFile(ref)
		if err != nil {
			return nil, err
		}
		o.values[ref] = v
	}
	return o, nil
}

func (o *opened) text(ref string) (string, error) {
	v, ok := o.values[ref]
	if !ok {
		return "", fmt.Errorf("the credential %s is not there", ref)
	}
	return v, nil
}
