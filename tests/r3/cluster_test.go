// Package r3 runs the fabric on three nats-servers, as processes of their own, that keep each stream three times. It takes
// minutes, so that only make r3 does it.
package r3

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol/natswire"
)

var run = flag.Bool("r3", false, "start the cluster and run the tests; otherwise they are left out")

// patience bounds each wait. It is far above what anything takes, so that only what hangs fails by it.
const patience = 2 * time.Minute

const nodes = 3

// cluster is three servers on loopback.
type cluster struct {
	t       *testing.T
	program string
	configs [nodes]string
	urls    [nodes]string
	running [nodes]*exec.Cmd
}

func start(t *testing.T) *cluster {
	t.Helper()
	if !*run {
		t.Skip("make r3 does it")
	}
	dir := t.TempDir()
	c := &cluster{t: t, program: filepath.Join(dir, "nats-server")}
	if out, err := exec.Command("go", "build", "-o", c.program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("nats-server cannot be built: %v\n%s", err, out)
	}
	var client, route [nodes]string
	for i := range nodes {
		client[i], route[i] = free(t), free(t)
	}
	for i := range nodes {
		c.urls[i] = "nats://" + client[i]
		c.configs[i] = filepath.Join(dir, fmt.Sprintf("n%d.conf", i))
		text := fmt.Sprintf("server_name: n%d\nlisten: %s\njetstream {store_dir: %q}\ncluster {name: r3, listen: %s, routes: [nats://%s]}\n",
			i, client[i], filepath.Join(dir, fmt.Sprintf("n%d", i)), route[i], strings.Join(route[:], ", nats://"))
		if err := os.WriteFile(c.configs[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range nodes {
			c.kill(i)
		}
	})
	return c
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (c *cluster) start(i int) {
	c.t.Helper()
	cmd := exec.Command(c.program, "-c", c.configs[i])
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.running[i] = cmd
}

// kill is kill -9.
func (c *cluster) kill(i int) {
	if cmd := c.running[i]; cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		c.running[i] = nil
	}
}

// dial connects to whichever server is there.
func (c *cluster) dial(t *testing.T) *natswire.Conn {
	t.Helper()
	var conn *natswire.Conn
	await(t, "the cluster takes connections", func(ctx context.Context) error {
		var err error
		conn, err = natswire.Connect(ctx, natswire.Config{URL: strings.Join(c.urls[:], ",")})
		return err
	})
	t.Cleanup(conn.Close)
	return conn
}

// provision makes the streams, once the servers have found each other.
func provision(t *testing.T, conn *natswire.Conn) {
	t.Helper()
	await(t, "the streams are made", func(ctx context.Context) error {
		return natswire.Provision(ctx, conn, natswire.ProvisionConfig{Replicas: nodes})
	})
}

// leader is which server leads a stream.
func (c *cluster) leader(conn *natswire.Conn, stream string) int {
	c.t.Helper()
	found := -1
	await(c.t, stream+" has a leader", func(ctx context.Context) error {
		m, err := conn.Request(ctx, natswire.Msg{Subject: "$JS.API.STREAM.INFO." + stream})
		if err != nil {
			return err
		}
		var info struct{ Cluster struct{ Leader string } }
		if err := json.Unmarshal(m.Data, &info); err != nil {
			return err
		}
		_, err = fmt.Sscanf(info.Cluster.Leader, "n%d", &found)
		return err
	})
	return found
}

// await tries again until it succeeds.
func await(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	all, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		ctx, stop := context.WithTimeout(all, 5*time.Second)
		err := try(ctx)
		stop()
		if err == nil {
			return
		}
		if natswire.Sleep(all, natswire.SystemClock{}, 100*time.Millisecond) != nil {
			t.Fatalf("it does not happen that %s: %v", what, err)
		}
	}
}
