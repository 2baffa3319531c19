package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

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
	o, err := settle(a, cmd, log, f.print, f.options)
	if err != nil || f.print {
		return err
	}
	o.Logger = log
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return a.serveNamesrv(ctx, o, f)
}

// options gathers the settings from all sources.
func (f *namesrvFlags) options(cmd *cobra.Command) (o *namesrv.Options, unknown []string, err error) {
	o = &namesrv.Options{Home: os.Getenv("ROCKETMQ_HOME")}
	unknown, err = readSettings(o.SetProperties, []string{f.config, f.tlsConfig}, f.set)
	if err != nil {
		return nil, nil, err
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
	figures, err := serveFigures(ctx, f.http, namesrvCollector{s}, s.Ready)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.WithoutCancel(ctx), l) }()
	if err := a.announce("name server", l.Addr().String(), figures.addr); err != nil {
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
