package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
)

func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q is not debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format %q is not text or json", format)
}

// settle gathers a server's options, warns of properties without a meaning, and prints the settings if that is what was asked for.
func settle[O interface{ Properties() (string, error) }](a *app, cmd *cobra.Command, log *slog.Logger, show bool,
	options func(*cobra.Command) (O, []string, error),
) (O, error) {
	o, unknown, err := options(cmd)
	if err != nil {
		return o, err
	}
	for _, name := range unknown {
		log.Warn("property without a meaning here", "name", name)
	}
	if show {
		text, err := o.Properties()
		fmt.Fprint(a.out, text)
		return o, err
	}
	return o, nil
}

// readSettings gives set the text of the files that are named, and then the pairs NAME=VALUE. It gathers the names that mean
// nothing.
func readSettings(set func(text string) ([]string, error), files, pairs []string) (unknown []string, err error) {
	for _, file := range files {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		more, err := set(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		unknown = append(unknown, more...)
	}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("--set %q: NAME=VALUE is expected", pair)
		}
		more, err := set(name + "=" + strings.ReplaceAll(value, `\`, `\\`))
		if err != nil {
			return nil, fmt.Errorf("--set: %w", err)
		}
		unknown = append(unknown, more...)
	}
	return unknown, nil
}

// announce prints where the server listens, for who started it with port 0.
func (a *app) announce(what, addr, figures string) error {
	if a.json {
		if err := a.line(map[string]string{strings.ReplaceAll(what, "name server", "namesrv"): addr, "http": figures}); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(a.out, what, "on", addr)
		if figures != "" {
			fmt.Fprintln(a.out, "metrics and health on", figures)
		}
	}
	return a.out.Flush()
}

// figuresServer serves metrics and health. Its zero value serves nothing.
type figuresServer struct {
	addr  string
	http  *http.Server
	ended chan error
}

// serveFigures listens on addr, if that is not empty, and serves what c collects.
func serveFigures(ctx context.Context, addr string, c prometheus.Collector, ready func() bool) (*figuresServer, error) {
	if addr == "" {
		return &figuresServer{}, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "not serving", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	f := &figuresServer{
		addr: l.Addr().String(), ended: make(chan error, 1),
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute},
	}
	go func() { f.ended <- f.http.Serve(l) }()
	return f, nil
}

func (f *figuresServer) stop(ctx context.Context) error {
	if f.http == nil {
		return nil
	}
	err := f.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, f.http.Close())
	}
	if ended := <-f.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
