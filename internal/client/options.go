package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// ErrOptions is the class of what is wrong with options.
var ErrOptions = errors.New("client options")

// DefaultInstance is the instance name that stands for one made of the process id and the time.
const DefaultInstance = "DEFAULT"

// Options configure a [Client]. NameServers or AddressServer is needed; the zero value of all else means the default.
type Options struct {
	// NameServers are the host:port of all name servers. Java: namesrvAddr, a list parted by semicolons, which
	// [ParseNameServers] reads.
	NameServers []string
	// AddressServer is the URL of a page that lists the name servers; it is read at the start and each two minutes. Java:
	// rocketmq.namesrv.domain.
	AddressServer string
	// InstanceName tells clients of one machine apart; default DEFAULT, which becomes the process id and the time. Unit, if
	// not empty, is added to the id. Java: instanceName, unitName.
	InstanceName, Unit string
	// KeepInstanceName leaves DEFAULT as it is, so that a consumer of broadcast messages finds its offsets again.
	KeepInstanceName bool
	// IP is this machine's address in ids. Default: the first one that is no loopback address, else 127.0.0.1.
	IP netip.Addr
	// Namespace is put before topics and groups, NS%T. Java: namespace.
	Namespace string

	// RouteEvery and HeartbeatEvery are the pauses between two refreshes of routes and two heartbeats. Default 30 s each; the
	// first heartbeat comes after 1 s, or at once to a broker that a group's topic leads to. Java: pollNameServerInterval,
	// heartbeatBrokerInterval.
	RouteEvery, HeartbeatEvery time.Duration
	// CallTimeout limits one request that the client makes for itself, such as a look-up at one name server. Default 3 s. Java:
	// mqClientApiTimeout.
	CallTimeout time.Duration

	// TLS, if not nil, encrypts every connection. Java: tls.enable.
	TLS *tls.Config
	// Credentials, if not nil, sign every request. Java: AclClientRPCHook.
	Credentials *Credentials
	// Hooks see every request and its answer, in this order. Java: RPCHook.
	Hooks []RPCHook
	// Dial makes a connection. Default: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// ConnectTimeout limits connecting. Default 3 s.
	ConnectTimeout time.Duration
	// Idle closes a connection without traffic. Default 120 s.
	Idle time.Duration
	// MaxAsync and MaxOneway limit such requests in flight. Default 65 535 each. Java: com.rocketmq.remoting.clientAsyncSemaphoreValue,
	// com.rocketmq.remoting.clientOnewaySemaphoreValue.
	MaxAsync, MaxOneway int
	// SocketBuffer is the size of each socket's buffers, bytes. Default: the system's. Java: com.rocketmq.remoting.socket.sndbuf.size.
	SocketBuffer int
	// MaxBody limits what a received body may grow to when it is decompressed, bytes. Default 64 MiB.
	MaxBody int
	// Logger receives changes of routes and what goes wrong, never a line per message. Default: discard.
	Logger *slog.Logger
}

// Credentials sign requests for a broker that checks them.
type Credentials = remoting.Credentials

// RPCHook sees the requests of a client. Its methods may be called from many goroutines.
type RPCHook interface {
	// BeforeRequest may change the request's fields; it is signed afterwards.
	BeforeRequest(addr string, req *remoting.Command)
	// AfterResponse is told of the answer of a request that had one.
	AfterResponse(addr string, req, resp *remoting.Command)
}

// ParseNameServers reads "host:port;host:port"; commas and white space part as well.
func ParseNameServers(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(";, \t\r\n", r) })
}

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	var errs []error
	if len(d.NameServers) == 0 && d.AddressServer == "" {
		errs = append(errs, ErrNoNameServer)
	}
	for _, addr := range d.NameServers {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, fmt.Errorf("NameServers: %w", err))
		}
	}
	for _, v := range []struct {
		name string
		n    int64
	}{
		{"RouteEvery", int64(d.RouteEvery)},
		{"HeartbeatEvery", int64(d.HeartbeatEvery)},
		{"CallTimeout", int64(d.CallTimeout)},
		{"MaxBody", int64(d.MaxBody)},
	} {
		if v.n < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", v.name))
		}
	}
	if slices.Contains(d.Hooks, nil) {
		errs = append(errs, errors.New("a hook is nil"))
	}
	d.NameServers = slices.Clone(d.NameServers)
	d.RouteEvery = cmp.Or(d.RouteEvery, 30*time.Second)
	d.HeartbeatEvery = cmp.Or(d.HeartbeatEvery, 30*time.Second)
	d.CallTimeout = cmp.Or(d.CallTimeout, 3*time.Second)
	d.MaxBody = cmp.Or(d.MaxBody, 64<<20)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	if !d.IP.IsValid() {
		d.IP = localIP()
	}
	if d.InstanceName = cmp.Or(d.InstanceName, DefaultInstance); d.InstanceName == DefaultInstance && !d.KeepInstanceName {
		d.InstanceName = strconv.Itoa(os.Getpid()) + "#" + strconv.FormatInt(time.Now().UnixNano(), 10)
	}
	if err := errors.Join(errs...); err != nil {
		return d, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return d, nil
}

// id is ip@instance[@unit].
func (o *Options) id() string {
	id := o.IP.String() + "@" + o.InstanceName
	if o.Unit != "" {
		id += "@" + o.Unit
	}
	return id
}

// localIP is the address that stands in ids, not one that anything is bound to.
func localIP() netip.Addr {
	fallback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return fallback
	}
	var six netip.Addr
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		switch ip := p.Addr().Unmap(); {
		case ip.IsLoopback() || ip.IsLinkLocalUnicast():
		case ip.Is4():
			return ip
		case !six.IsValid():
			six = ip
		}
	}
	if six.IsValid() {
		return six
	}
	return fallback
}
