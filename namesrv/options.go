package namesrv

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Options configure a [Server]. The zero value, and nil, mean the defaults below: everything in memory.
type Options struct {
	// Home is the directory below which the files are, unless they are named one by one. Empty: no files. Java: rocketmqHome.
	Home string
	// KVConfigPath is the file of the key-value configuration. Default $Home/namesrv/kvConfig.json. Java: kvConfigPath.
	KVConfigPath string
	// ConfigStorePath is the file that a change at run time (request 318) is written to. Default
	// $Home/namesrv/namesrv.properties. Java: configStorePath.
	ConfigStorePath string
	// BindAddress and Port say where to listen; [Options.Address] joins them. The caller of Serve listens. Default 127.0.0.1 and
	// 9876; a negative port means any. Java: bindAddress, listenPort.
	BindAddress string
	Port        int
	// OrderMessages adds to a route the order configuration of its topic, which is kept in the key-value namespace
	// ORDER_TOPIC_CONFIG. Java: orderMessageEnable.
	OrderMessages bool
	// ProductEnvName is printed only. Default "center". Java: productEnvName, for clusterTest, which is not supported.
	ProductEnvName string
	// WaitForService makes the server refuse to answer for routes in the first WaitTime after its start, when the tables are not full
	// yet. Java 5.x: needWaitForService, waitSecondsForService (45 s).
	WaitForService bool
	WaitTime       time.Duration
	// BrokerTimeout is how old a broker's last report may become. Default 120 s.
	BrokerTimeout time.Duration
	// ScanEvery is the time between two looks for brokers whose time is over; the first comes after ScanFirst. Default 10 s and 5 s.
	// Java 5.x: scanNotActiveBrokerInterval (5 s there).
	ScanEvery, ScanFirst time.Duration
	// PrintEvery is the time between two prints of the tables at debug level. Default 10 min.
	PrintEvery time.Duration
	// Idle closes a connection without traffic, which counts as the broker's death. Default 120 s. Java: serverChannelMaxIdleTimeSeconds.
	Idle time.Duration
	// MaxConns limits the connections. Default 10 000.
	MaxConns int
	// MaxFrame limits a frame, bytes. Default 16 MiB. Java: com.rocketmq.remoting.frameMaxLength.
	MaxFrame int
	// MaxInflated limits a compressed registration after inflating, bytes. Default 64 MiB.
	MaxInflated int64
	// TLS says how encrypted connections are treated.
	TLS TLS
	// Now is the clock of the tables. Default time.Now.
	Now func() time.Time
	// Events is told of brokers that come and go, from several goroutines, after the tables have changed. Nil: nobody.
	Events func(Event)
	// Logger receives what happens to brokers and what goes wrong. Default: discard.
	Logger *slog.Logger
}

// TLS is the encryption of a server's connections. The zero value means none: connections that begin a handshake are closed.
type TLS = remoting.TLSSettings

// DefaultPort is where clients expect a name server.
const DefaultPort = 9876

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	var errs []error
	for _, v := range []struct {
		name  string
		value int64
	}{
		{"WaitTime", int64(d.WaitTime)},
		{"BrokerTimeout", int64(d.BrokerTimeout)},
		{"ScanEvery", int64(d.ScanEvery)},
		{"ScanFirst", int64(d.ScanFirst)},
		{"PrintEvery", int64(d.PrintEvery)},
		{"Idle", int64(d.Idle)},
		{"MaxConns", int64(d.MaxConns)},
		{"MaxFrame", int64(d.MaxFrame)},
		{"MaxInflated", d.MaxInflated},
	} {
		if v.value < 0 {
			errs = append(errs, fmt.Errorf("%s %d is negative", v.name, v.value))
		}
	}
	if d.Port > 65535 {
		errs = append(errs, fmt.Errorf("port %d is above 65535", d.Port))
	}
	if d.Home != "" {
		d.KVConfigPath = cmp.Or(d.KVConfigPath, filepath.Join(d.Home, "namesrv", "kvConfig.json"))
		d.ConfigStorePath = cmp.Or(d.ConfigStorePath, filepath.Join(d.Home, "namesrv", "namesrv.properties"))
	}
	d.ProductEnvName = cmp.Or(d.ProductEnvName, "center")
	d.BindAddress = cmp.Or(d.BindAddress, "127.0.0.1")
	d.Port = max(cmp.Or(d.Port, DefaultPort), 0)
	d.WaitTime = cmp.Or(d.WaitTime, 45*time.Second)
	d.BrokerTimeout = cmp.Or(d.BrokerTimeout, 120*time.Second)
	d.ScanEvery = cmp.Or(d.ScanEvery, 10*time.Second)
	d.ScanFirst = cmp.Or(d.ScanFirst, 5*time.Second)
	d.PrintEvery = cmp.Or(d.PrintEvery, 10*time.Minute)
	d.Idle = cmp.Or(d.Idle, 120*time.Second)
	d.MaxConns = cmp.Or(d.MaxConns, 10_000)
	d.MaxFrame = cmp.Or(d.MaxFrame, remoting.MaxFrame)
	d.MaxInflated = cmp.Or(d.MaxInflated, 64<<20)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	if d.Now == nil {
		d.Now = time.Now
	}
	return d, errors.Join(errs...)
}
