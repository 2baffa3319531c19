package namesrv

import (
	"math"
	"net"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/internal/properties"
)

// ErrProperty says that a property's value is not allowed, or that it cannot be changed.
var ErrProperty = properties.ErrRefused

// settings are the properties that mean something here, in the order in which they are printed. The first names are Java's,
// those behind brokerTimeoutMillis are ours. Asking the product environment's name servers (clusterTest) is not supported, and
// keys must not be encrypted.
func settings() []properties.Setting[Options] {
	text := properties.Text[Options]
	live := func(name string, field func(*Options) *bool) properties.Setting[Options] {
		return properties.Live(properties.Bool(name, false, field))
	}
	return []properties.Setting[Options]{
		text("rocketmqHome", func(o *Options) *string { return &o.Home }),
		text("kvConfigPath", func(o *Options) *string { return &o.KVConfigPath }),
		text("configStorePath", func(o *Options) *string { return &o.ConfigStorePath }),
		text("productEnvName", func(o *Options) *string { return &o.ProductEnvName }),
		properties.Ignored[Options]("clusterTest", "false"),
		text("bindAddress", func(o *Options) *string { return &o.BindAddress }),
		properties.Port("listenPort", func(o *Options) *int { return &o.Port }),
		live("orderMessageEnable", func(o *Options) *bool { return &o.OrderMessages }),
		live("needWaitForService", func(o *Options) *bool { return &o.WaitForService }),
		properties.Time("waitSecondsForService", time.Second, func(o *Options) *time.Duration { return &o.WaitTime }),
		properties.Time("scanNotActiveBrokerInterval", time.Millisecond, func(o *Options) *time.Duration { return &o.ScanEvery }),
		properties.Time("serverChannelMaxIdleTimeSeconds", time.Second, func(o *Options) *time.Duration { return &o.Idle }),
		text("tls.server.mode", func(o *Options) *string { return &o.TLS.Mode }),
		text("tls.server.certPath", func(o *Options) *string { return &o.TLS.CertFile }),
		text("tls.server.keyPath", func(o *Options) *string { return &o.TLS.KeyFile }),
		properties.Ignored[Options]("tls.server.keyPassword", ""),
		text("tls.server.trustCertPath", func(o *Options) *string { return &o.TLS.TrustFile }),
		text("tls.server.need.client.auth", func(o *Options) *string { return &o.TLS.ClientAuth }),
		properties.Time("brokerTimeoutMillis", time.Millisecond, func(o *Options) *time.Duration { return &o.BrokerTimeout }),
		properties.Time("printIntervalMillis", time.Millisecond, func(o *Options) *time.Duration { return &o.PrintEvery }),
		properties.Number("maxConnections", 1, math.MaxInt32, func(o *Options) *int { return &o.MaxConns }),
		properties.Number("frameMaxLength", 1, math.MaxInt32, func(o *Options) *int { return &o.MaxFrame }),
	}
}

// SetProperties reads the text of a .properties file with the names of the original into o; what it does not name stays. Properties
// that mean nothing here are returned by name. An error names property, value and what is allowed, and matches [ErrProperty] or
// the syntax.
func (o *Options) SetProperties(text string) (unknown []string, err error) {
	return properties.Apply(o, settings(), text)
}

// Properties returns the effective settings as the text of a .properties file.
func (o *Options) Properties() (string, error) {
	d, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	return d.properties(), nil
}

func (o *Options) properties() string { return properties.Print(o, settings()) }

// Address is where to listen, host:port.
func (o *Options) Address() (string, error) {
	d, err := o.withDefaults()
	return net.JoinHostPort(d.BindAddress, strconv.Itoa(d.Port)), err
}

// liveChange applies properties to a running server's options. All of them are looked at before the first is taken.
func (o *Options) liveChange(text string) (Options, error) {
	changed := *o
	err := properties.Change(&changed, settings(), text)
	return changed, err
}
