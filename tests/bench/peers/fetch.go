package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// once fetches a program the first time it is asked for; an error stays.
func (e *Env) once(name string, fetch func() (string, error)) (string, error) {
	if path, ok := e.got[name]; ok {
		return path, nil
	}
	path, err := fetch()
	if err == nil {
		e.got[name] = path
	}
	return path, err
}

// redisServer is the command of a redis-server: the one that is installed, or Debian's, unpacked into the environment's
// directory and not installed.
func (e *Env) redisServer(ctx context.Context) (path string, env []string, err error) {
	if path, err := exec.LookPath("redis-server"); err == nil {
		return path, nil, nil
	}
	root, err := e.once("redis", func() (string, error) {
		return e.unpack(ctx, "redis-server", "redis-tools", "libjemalloc2", "liblzf1")
	})
	if err != nil {
		return "", nil, fmt.Errorf("no redis-server is installed, and none can be fetched: %w", err)
	}
	libs, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-*"))
	if err != nil || len(libs) == 0 {
		return "", nil, errors.New("redis-server came without its libraries")
	}
	return filepath.Join(root, "usr", "bin", "redis-server"), append(os.Environ(), "LD_LIBRARY_PATH="+libs[0]), nil
}

// unpack fetches Debian packages and unpacks them into a folder.
func (e *Env) unpack(ctx context.Context, packages ...string) (string, error) {
	dir, err := e.dir("debian")
	if err != nil {
		return "", err
	}
	get := exec.CommandContext(ctx, "apt-get", append([]string{"download"}, packages...)...) //nolint:gosec // our own names
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		return "", fmt.Errorf("apt-get download: %w: %.300s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if out, err := exec.CommandContext(ctx, "dpkg", "-x", f, dir).CombinedOutput(); err != nil { //nolint:gosec // a file we made
			return "", fmt.Errorf("dpkg -x %s: %w: %.300s", f, err, out)
		}
	}
	return dir, nil
}

// postgres is the folder with PostgreSQL's programs: the newest one that is installed.
func postgres() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("no PostgreSQL is installed; apt-get install postgresql, or have initdb in PATH")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

const restateVersion = "1.7.12"

// restateServer is the command of a restate-server: the one that is installed, or that of its npm package.
func (e *Env) restateServer(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("restate-server"); err == nil {
		return path, nil
	}
	return e.once("restate", func() (string, error) {
		dir, err := e.dir("npm")
		if err != nil {
			return "", err
		}
		arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
		name := "@restatedev/restate-server-" + runtime.GOOS + "-" + arch
		install := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-fund", "--no-audit", name+"@"+restateVersion) //nolint:gosec // our own name
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			return "", fmt.Errorf("no restate-server is installed, and none can be fetched: npm install %s: %w: %.300s", name, err, out)
		}
		return filepath.Join(dir, "node_modules", filepath.FromSlash(name), "bin", "restate-server"), nil
	})
}
