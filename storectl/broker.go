package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/broker"
)

// brokerFlags are the flags of the verb.
type brokerFlags struct {
	config, tlsConfig   string
	print               bool
	bind, advertise     string
	port                int
	name, namesrv       string
	dir, dialect, http  string
	set                 []string
	logLevel, logFormat string
	startTime, grace    time.Duration
}

func (a *app) broker() *cobra.Command {
	var f brokerFlags
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run a broker on a store directory, for real and our clients",
		Long: `Run a broker on a store directory. Settings come from, in this order, so that later ones
win: the defaults, the .properties file of --config with the names of the original, the one
of --tls-config, --set, the other flags. It listens on 127.0.0.1:10911 unless told
otherwise; bound to 0.0.0.0 it must be told its own address (--advertise, brokerIP1).

Old messages are deleted only if fileReservedTime says after how many hours.

SIGTERM and SIGINT stop it: it unregisters, answers what it has read, closes the store
cleanly, and ends with status 0. With --http it serves /metrics (Prometheus), /healthz and
/readyz, which is not ready while the store is recovered.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runBroker(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "read this .properties file")
	flags.StringVar(&f.tlsConfig, "tls-config", "", "read this .properties file with tls.server.… too")
	flags.BoolVarP(&f.print, "print", "p", false, "print all settings and stop")
	flags.StringVar(&f.dir, "store", "", "the store directory (storePathRootDir)")
	flags.StringVar(&f.dialect, "dialect", "", "3.1, 4.9 or 5.3 (default: that of the directory; in a new one 4.9)")
	flags.StringVar(&f.name, "name", "", "the broker's name (default: the host's)")
	flags.StringVarP(&f.namesrv, "namesrv", "n", "", "register with these name servers, HOST:PORT;…")
	flags.StringVar(&f.bind, "bind", "", "listen on this address (default 127.0.0.1)")
	flags.IntVar(&f.port, "port", 0, "listen on this port, 0: any (default 10911)")
	flags.StringVar(&f.advertise, "advertise", "", "the IP address that clients are told (default: that of --bind)")
	flags.StringVar(&f.http, "http", "", "serve metrics and health on this HOST:PORT; without a host on 127.0.0.1")
	flags.StringArrayVar(&f.set, "set", nil, "set NAME=VALUE, a property of the file; may be repeated")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.DurationVar(&f.startTime, "start-time", time.Hour, "give up when the store is not recovered by then")
	flags.DurationVar(&f.grace, "grace", 10*time.Second, "time to answer what was read when told to stop")
	return cmd
}

func (a *app) runBroker(cmd *cobra.Command, f *brokerFlags) error {
	log, err := newLogger(a.errOut, f.logLevel, f.logFormat)
	if err != nil {
		return err
	}
	o, err := settle(a, cmd, log, f.print, f.options)
	if err != nil || f.print {
		return err
	}
	if o.Dir == "" {
		return errors.New("no store directory is named: want --store DIR, or storePathRootDir in the file of --config")
	}
	o.Logger = log
	room := headroom(os.Getenv)
	defer runtime.KeepAlive(room)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return a.serveBroker(ctx, o, f, log)
}

// headroom is memory that nobody ever touches, so that the system gives none for it. A broker holds little itself, but makes
// garbage with each message: beside it the collector runs at twice its size instead of each few megabytes, where it also cuts the
// stacks of waiting workers, which then grow anew (docs/performance.md). Who set the collector by environment gets nil.
func headroom(getenv func(name string) string) []byte {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, 32<<20)
}

// options gathers the settings from all sources.
func (f *brokerFlags) options(cmd *cobra.Command) (o *broker.Options, unknown []string, err error) {
	o = &broker.Options{ConfigFile: f.config}
	unknown, err = readSettings(o.SetProperties, []string{f.config, f.tlsConfig}, f.set)
	if err != nil {
		return nil, nil, err
	}
	if f.namesrv != "" {
		if _, err := o.SetProperties("namesrvAddr=" + f.namesrv); err != nil {
			return nil, nil, err
		}
	}
	o.Dir = cmp.Or(f.dir, o.Dir)
	o.Store.Dialect = cmp.Or(f.dialect, o.Store.Dialect)
	o.Name = cmp.Or(f.name, o.Name)
	o.BindAddress = cmp.Or(f.bind, o.BindAddress)
	o.AdvertisedIP = cmp.Or(f.advertise, o.AdvertisedIP)
	if cmd.Flags().Changed("port") {
		o.Port = cmp.Or(f.port, -1)
	}
	return o, unknown, nil
}

// serveBroker runs the broker until ctx ends, and then stops it within the time of grace.
func (a *app) serveBroker(ctx context.Context, o *broker.Options, f *brokerFlags, log *slog.Logger) error {
	collector := &brokerCollector{}
	figures, err := serveFigures(ctx, f.http, collector, collector.ready)
	if err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, f.startTime)
	b, err := broker.Start(starting, o)
	cancel()
	if err != nil {
		return errors.Join(err, figures.stop(ctx))
	}
	collector.serve(b)
	if err := a.announce("broker", b.Addr(), figures.addr); err != nil {
		return errors.Join(err, b.Shutdown(ctx), figures.stop(ctx))
	}
	<-ctx.Done()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.grace)
	defer cancel()
	err = b.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were cut off", "err", err)
		err = nil
	}
	return errors.Join(err, figures.stop(context.WithoutCancel(ctx)))
}
