package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

func (a *app) fakeLLMCmd() *cobra.Command {
	var script, listen, ledger string
	cmd := &cobra.Command{
		Use: "fake-llm", Short: "Serve a script over the Gemini API", Args: cobra.NoArgs,
		Long: `Fake-llm answers the Gemini HTTP API by the rules of a script, plain and streaming, so that agents can be tried without a
model. Point GOOGLE_GEMINI_BASE_URL at it; any GOOGLE_API_KEY will do.`,
		Example: `  toolfabric fake-llm --script script.yaml --listen 127.0.0.1:8089
  GOOGLE_API_KEY=any GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8089 toolfabric up --agents ./agents`,
	}
	f := cmd.Flags()
	f.StringVar(&script, "script", "", "`FILE` of rules")
	f.StringVar(&listen, "listen", "127.0.0.1:0", "`HOST:PORT`; port 0 takes a free one")
	f.StringVar(&ledger, "ledger", "", "`FILE` that gets a line of JSON for each request")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		if script == "" {
			return protocol.Errorf(protocol.CodeUsage, "which script? name one with --script FILE")
		}
		s, err := scripted.Load(script)
		if err != nil {
			return err
		}
		handler, err := fakellm.New(fakellm.Config{Script: s, Ledger: ledger})
		if err != nil {
			return err
		}
		return a.serve(ctx, listen, handler)
	})
	return cmd
}

// serve prints the URL on stdout and serves until ctx ends.
func (a *app) serve(ctx context.Context, listen string, handler http.Handler) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return protocol.Wrap(err, protocol.CodeUsage, "listen on %q", listen)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(a.logger(slog.LevelWarn).Handler(), slog.LevelWarn)}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		done <- server.Shutdown(bounded)
	}()
	url := "http://" + l.Addr().String()
	if err := a.print(map[string]string{"url": url}, func() error { return a.write(url + "\n") }); err != nil {
		return err
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if err := <-done; err != nil {
		_ = server.Close() // streams that nobody reads
	}
	return nil
}
