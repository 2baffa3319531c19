package namesrv

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/internal/properties"
)

// property is one setting under its name in a .properties file.
type property struct {
	name string
	get  func(o *Options) string
	set  func(o *Options, value string) error
	// live says that it may be changed while the server runs.
	live bool
}

// settings are the properties that mean something here, in the order in which they are printed. The first names are Java's,
// those behind brokerTimeoutMillis are ours.
func settings() []property {
	return []property{
		textProperty("rocketmqHome", func(o *Options) *string { return &o.Home }),
		textProperty("kvConfigPath", func(o *Options) *string { return &o.KVConfigPath }),
		textProperty("configStorePath", func(o *Options) *string { return &o.ConfigStorePath }),
		textProperty("productEnvName", func(o *Options) *string { return &o.ProductEnvName }),
		{"clusterTest", func(*Options) string { return "false" }, noClusterTest, false},
		textProperty("bindAddress", func(o *Options) *string { return &o.BindAddress }),
		portProperty("listenPort"),
		boolProperty("orderMessageEnable", func(o *Options) *bool { return &o.OrderMessages }),
		boolProperty("needWaitForService", func(o *Options) *bool { return &o.WaitForService }),
		timeProperty("waitSecondsForService", time.Second, func(o *Options) *time.Duration { return &o.WaitTime }),
		timeProperty("scanNotActiveBrokerInterval", time.Millisecond, func(o *Options) *time.Duration { return &o.ScanEvery }),
		timeProperty("serverChannelMaxIdleTimeSeconds", time.Second, func(o *Options) *time.Duration { return &o.Idle }),
		textProperty("tls.server.mode", func(o *Options) *string { return &o.TLS.Mode }),
		textProperty("tls.server.certPath", func(o *Options) *string { return &o.TLS.CertFile }),
		textProperty("tls.server.keyPath", func(o *Options) *string { return &o.TLS.KeyFile }),
		{"tls.server.keyPassword", func(*Options) string { return "" }, noPassword, false},
		textProperty("tls.server.trustCertPath", func(o *Options) *string { return &o.TLS.TrustFile }),
		textProperty("tls.server.need.client.auth", func(o *Options) *string { return &o.TLS.ClientAuth }),
		timeProperty("brokerTimeoutMillis", time.Millisecond, func(o *Options) *time.Duration { return &o.BrokerTimeout }),
		timeProperty("printIntervalMillis", time.Millisecond, func(o *Options) *time.Duration { return &o.PrintEvery }),
		countProperty("maxConnections", func(o *Options) *int { return &o.MaxConns }),
		countProperty("frameMaxLength", func(o *Options) *int { return &o.MaxFrame }),
	}
}

// noClusterTest takes only what it is: asking the product environment's name servers is not supported.
func noClusterTest(_ *Options, value string) error {
	if value != "false" {
		return errors.New("allowed: false")
	}
	return nil
}

// noPassword takes no password: keys must not be encrypted.
func noPassword(_ *Options, value string) error {
	if value != "" {
		return errors.New("allowed: nothing, since encrypted keys cannot be read")
	}
	return nil
}

func textProperty(name string, field func(*Options) *string) property {
	return property{name: name, get: func(o *Options) string { return *field(o) }, set: func(o *Options, v string) error {
		*field(o) = v
		return nil
	}}
}

func boolProperty(name string, field func(*Options) *bool) property {
	p := property{name: name, live: true, get: func(o *Options) string { return strconv.FormatBool(*field(o)) }}
	p.set = func(o *Options, v string) error {
		if v != "true" && v != "false" {
			return errors.New("allowed: true, false")
		}
		*field(o) = v == "true"
		return nil
	}
	return p
}

func timeProperty(name string, unit time.Duration, field func(*Options) *time.Duration) property {
	p := property{name: name, get: func(o *Options) string { return strconv.FormatInt(int64(*field(o)/unit), 10) }}
	p.set = func(o *Options, v string) error {
		most := int64(24 * time.Hour / unit)
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("allowed: 1 to %d", most)
		}
		*field(o) = time.Duration(n) * unit
		return nil
	}
	return p
}

func countProperty(name string, field func(*Options) *int) property {
	p := property{name: name, get: func(o *Options) string { return strconv.Itoa(*field(o)) }}
	p.set = func(o *Options, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 1<<30 {
			return fmt.Errorf("allowed: 1 to %d", 1<<30)
		}
		*field(o) = n
		return nil
	}
	return p
}

// portProperty reads 0 as any port, which in [Options] is a negative one.
func portProperty(name string) property {
	return property{name: name, get: func(o *Options) string { return strconv.Itoa(o.Port) }, set: func(o *Options, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 65535 {
			return errors.New("allowed: 0 to 65535")
		}
		if o.Port = n; n == 0 {
			o.Port = -1
		}
		return nil
	}}
}

// ErrProperty says that a property's value is not allowed, or that it cannot be changed.
var ErrProperty = errors.New("property refused")

func refuse(name, value string, err error) error {
	if name == "tls.server.keyPassword" {
		value = "…"
	}
	return fmt.Errorf("%w: %s = %q: %w", ErrProperty, name, value, err)
}

// SetProperties reads the text of a .properties file with the names of the original into o; what it does not name stays. Properties
// that mean nothing here are returned by name. An error names property, value and what is allowed, and matches [ErrProperty] or
// the syntax.
func (o *Options) SetProperties(text string) (unknown []string, err error) {
	pairs, err := properties.Parse(text)
	if err != nil {
		return nil, err
	}
	known := settings()
next:
	for _, pair := range pairs {
		for _, p := range known {
			if p.name != pair.Name {
				continue
			}
			if err := p.set(o, pair.Value); err != nil {
				return unknown, fmt.Errorf("line %d: %w", pair.Line, refuse(pair.Name, pair.Value, err))
			}
			continue next
		}
		unknown = append(unknown, pair.Name)
	}
	return unknown, nil
}

// Properties returns the effective settings as the text of a .properties file.
func (o *Options) Properties() (string, error) {
	d, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	return d.properties(), nil
}

func (o *Options) properties() string {
	var b []byte
	for _, p := range settings() {
		b = properties.Append(b, p.name, p.get(o))
	}
	return string(b)
}

// Address is where to listen, host:port.
func (o *Options) Address() (string, error) {
	d, err := o.withDefaults()
	return net.JoinHostPort(d.BindAddress, strconv.Itoa(d.Port)), err
}

// liveChange applies properties to a running server's options. All of them are looked at before the first is taken.
func (o *Options) liveChange(text string) (Options, error) {
	changed := *o
	pairs, err := properties.Parse(text)
	if err != nil {
		return changed, err
	}
	for _, pair := range pairs {
		if err := changed.setLive(pair.Name, pair.Value); err != nil {
			return changed, refuse(pair.Name, pair.Value, err)
		}
	}
	return changed, nil
}

var errNotLive = errors.New("cannot be changed while the server runs")

func (o *Options) setLive(name, value string) error {
	for _, p := range settings() {
		switch {
		case p.name != name:
		case p.live:
			return p.set(o, value)
		case p.get(o) == value:
			return nil // a whole configuration that is sent back has these too
		default:
			return errNotLive
		}
	}
	return errors.New("no such property")
}
