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
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/namesrv"
)

// namesrvFlags are the flags of the verb.
type namesrvFlags struct {
	config, tlsConfig    string
	print                bool
	bind, home, http     string
	port                 int
	set                  []string
	logLevel, logFormat  string
	grace                time.Duration
	scanEvery, brokerOld time.Duration
}

func (a *app) namesrv() *cobra.Command {
	var f namesrvFlags
	cmd := &cobra.Command{
		Use:   "namesrv",
		Short: "Run a name server for real and our brokers and clients",
		Long: `Run a name server. Settings come from, in this order, so that later ones win: the defaults,
ROCKETMQ_HOME, the .properties file of --config with the names of the original, the one of
--tls-config, --set, the other flags. It listens on 127.0.0.1:9876 unless told otherwise.

SIGTERM and SIGINT stop it: it answers what it has read, closes its connections, and ends
with status 0. With --http it serves /metrics (Prometheus), /healthz and /readyz.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runNamesrv(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "read this .properties file")
	flags.StringVar(&f.tlsConfig, "tls-config", "", "read this .properties file with tls.server.… too")
	flags.BoolVarP(&f.print, "print", "p", false, "print all settings and stop")
	flags.StringVar(&f.bind, "bind", "", "listen on this address (default 127.0.0.1)")
	flags.IntVar(&f.port, "port", 0, "listen on this port, 0: any (default 9876)")
	flags.StringVar(&f.home, "home", "", "keep files below this directory (default $ROCKETMQ_HOME; none: no files)")
	flags.StringVar(&f.http, "http", "", "serve metrics and health on this HOST:PORT; without a host on 127.0.0.1")
	flags.StringArrayVar(&f.set, "set", nil, "set NAME=VALUE, a property of the file; may be repeated")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.DurationVar(&f.grace, "grace", 10*time.Second, "time to answer what was read when told to stop")
	flags.DurationVar(&f.scanEvery, "scan-every", 0, "time between two looks for silent brokers (default 10s)")
	flags.DurationVar(&f.brokerOld, "broker-timeout", 0, "drop a broker that was silent for so long (default 2m0s)")
	return cmd
}

func (a *app) runNamesrv(cmd *cobra.Command, f *namesrvFlags) error {
	log, err := newLogger(a.errOut, f.logLevel, f.logFormat)
	if err != nil {
		return err
	}
	o, unknown, err := f.options(cmd)
	if err != nil {
		return err
	}
	o.Logger = log
	for _, name := range unknown {
		log.Warn("property without a meaning here", "name", name)
	}
	if f.print {
		text, err := o.Properties()
		fmt.Fprint(a.out, text)
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return a.serveNamesrv(ctx, o, f)
}

// options gathers the settings from all sources.
func (f *namesrvFlags) options(cmd *cobra.Command) (o *namesrv.Options, unknown []string, err error) {
	o = &namesrv.Options{Home: os.Getenv("ROCKETMQ_HOME")}
	for _, file := range []string{f.config, f.tlsConfig} {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		more, err := o.SetProperties(string(text))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		unknown = append(unknown, more...)
	}
	for _, pair := range f.set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, nil, fmt.Errorf("--set %q: NAME=VALUE is expected", pair)
		}
		more, err := o.SetProperties(name + "=" + strings.ReplaceAll(value, `\`, `\\`))
		if err != nil {
			return nil, nil, fmt.Errorf("--set: %w", err)
		}
		unknown = append(unknown, more...)
	}
	o.BindAddress = cmp.Or(f.bind, o.BindAddress)
	o.Home = cmp.Or(f.home, o.Home)
	o.ScanEvery = cmp.Or(f.scanEvery, o.ScanEvery)
	o.BrokerTimeout = cmp.Or(f.brokerOld, o.BrokerTimeout)
	if cmd.Flags().Changed("port") {
		o.Port = cmp.Or(f.port, -1)
	}
	return o, unknown, nil
}

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

// serveNamesrv runs the server until ctx ends, and then stops it within the time of grace.
func (a *app) serveNamesrv(ctx context.Context, o *namesrv.Options, f *namesrvFlags) error {
	s, err := namesrv.New(o)
	if err != nil {
		return err
	}
	addr, err := o.Address()
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	figures, err := a.serveFigures(ctx, s, f.http)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.WithoutCancel(ctx), l) }()
	if err := a.announce(l.Addr().String(), figures.addr); err != nil {
		return errors.Join(err, s.Shutdown(ctx), <-ended, figures.stop(ctx))
	}
	select {
	case err = <-ended:
		ended <- nil
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.grace)
	defer cancel()
	if late := s.Shutdown(grace); late != nil {
		o.Logger.Warn("requests were cut off", "err", late)
	}
	return errors.Join(err, <-ended, figures.stop(grace))
}

// announce prints where the server listens, for who started it with port 0.
func (a *app) announce(addr, figures string) error {
	if a.json {
		if err := a.line(map[string]string{"namesrv": addr, "http": figures}); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(a.out, "name server on", addr)
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

// serveFigures listens on addr, if that is not empty.
func (a *app) serveFigures(ctx context.Context, s *namesrv.Server, addr string) (*figuresServer, error) {
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
	registry.MustRegister(namesrvCollector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.Ready() {
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
