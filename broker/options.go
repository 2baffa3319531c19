package broker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// DefaultPort is where a broker listens.
const DefaultPort = 10911

// Options configure a [Broker]. Dir is needed; the zero value of all else, which nil stands for, means the defaults below.
type Options struct {
	// Cluster, Name and ID say which broker it is; ID 0 is a master. Default DefaultCluster, the host's name, 0. Java:
	// brokerClusterName, brokerName, brokerId.
	Cluster, Name string
	ID            int64
	// BindAddress and Port say where to listen. Default 127.0.0.1 and 10911; a negative port means any. Java: bindAddress,
	// listenPort.
	BindAddress string
	Port        int
	// VIP has Start listen on Port-2 too, to which clients of 4.0 to 4.4 send. It is for a Port that is named.
	VIP bool
	// AdvertisedIP is the address that name servers and stored messages name. Default BindAddress, which must then be one that
	// clients can reach: not 0.0.0.0. Java: brokerIP1. AdvertisedHA and HAPort are where slaves would connect. Default
	// AdvertisedIP and Port+1. Java: brokerIP2, haListenPort.
	AdvertisedIP, AdvertisedHA string
	HAPort                     int
	// NameServers are the host:port of all name servers to register with. Java: namesrvAddr.
	NameServers []string

	// ConfigFile is the .properties file that the settings came from. A change at run time (request 25) is written into it, the
	// content before to FILE.bak. Default: none, and such a change holds until the broker ends.
	ConfigFile string

	// Dir is the store directory. Java: storePathRootDir.
	Dir string
	// Store are the store's options. Queued, Tables and StoreHost are set by the broker, and those of Checks that are not set.
	Store rocketstore.Options

	// SyncMaster has producers told that no slave has their message, SLAVE_NOT_AVAILABLE instead of SEND_OK, unless they do not want to
	// wait: it is what a master says that is to wait for slaves and has none, and this broker has none ever. Java: brokerRole=SYNC_MASTER.
	SyncMaster bool

	// Permission is what the broker allows, PermRead and PermWrite or-ed. Default 6, both. Java: brokerPermission.
	Permission int32
	// DefaultTopicQueues is how many queues TBW102 has, and a new topic at most. Default 8. Java: defaultTopicQueueNums.
	DefaultTopicQueues int32
	// NoAutoTopics and NoAutoGroups refuse what was not created before. Java: autoCreateTopicEnable,
	// autoCreateSubscriptionGroup.
	NoAutoTopics, NoAutoGroups bool
	// NoClusterTopic and NoBrokerTopic make the topics of these names unusable. Java: clusterTopicEnable, brokerTopicEnable.
	NoClusterTopic, NoBrokerTopic bool
	// TraceTopic has the topic TraceTopicName made, default RMQ_SYS_TRACE_TOPIC. Java: traceTopicEnable, msgTraceTopicName.
	TraceTopic     bool
	TraceTopicName string
	// NoTrace and Region are told to producers. Default region DefaultRegion. Java: traceOn, regionId.
	NoTrace bool
	Region  string
	// NoTransactionChecks asks no producer what became of its transactions; [Broker.SetTransactionChecks] changes it at run time. How
	// they are asked is in Store.Checks. Java: checkTransactionMessageEnable.
	NoTransactionChecks bool
	// RejectTransactions refuses prepared messages. Java: rejectTransactionMessage.
	RejectTransactions bool

	// RegisterEvery is the time between two registrations, RegisterTimeout how long one may take. Default 30 s and 6 s. Java:
	// registerNameServerPeriod, registerBrokerTimeoutMills.
	RegisterEvery, RegisterTimeout time.Duration
	// CompressRegistration sends it deflated. Java: compressedRegister.
	CompressRegistration bool
	// SaveOffsetsEvery is how often the consumers' progress is written, first after 10 s. Default 5 s. Java:
	// flushConsumerOffsetInterval.
	SaveOffsetsEvery time.Duration

	// NoLongPolling holds a pull that finds nothing for ShortPolling only, default 1 s. Java: longPollingEnable,
	// shortPollingTimeMills.
	NoLongPolling bool
	ShortPolling  time.Duration
	// NoNotify tells consumers nothing of each other. Java: notifyConsumerIdsChangedEnable.
	NoNotify bool
	// Limits of one pull: what lies within MemoryRatio percent of Memory behind the log's end counts as in memory. Default 32
	// messages and 256 KiB from memory, 8 and 64 KiB from disk; 40 percent of the machine's memory. Java:
	// maxTransfer{Count,Bytes}OnMessageIn{Memory,Disk}, accessMessageInMemoryMaxRatio.
	CountInMemory, CountOnDisk int
	BytesInMemory, BytesOnDisk int
	MemoryRatio                int
	Memory                     int64

	// SendWorkers limits the sends that are worked on at once; others wait for them, MaxSends in all. Default no limit: unlike the
	// original's, a send here takes no thread while the disk is at work. Java: sendMessageThreadPoolNums, whose default is 32 and four
	// for each processor in 3.1, and one for each, at most 4, in 4.9 and 5.3.
	SendWorkers int
	// MaxSends limits the sends under way, MaxHeld the pulls that wait (one with more than 64 tags counts as several), MaxPullBytes
	// what all answers with messages hold that are made, and those that wait for who does not read. Beyond them the answer is SYSTEM_BUSY. Default 10 000, 100 000, 256 MiB. Java:
	// sendThreadPoolQueueCapacity.
	MaxSends, MaxHeld int64
	MaxPullBytes      int64
	// Stalled refuses sends, with SYSTEM_BUSY, while none of those under way has ended for so long. Default 1 s. Java:
	// osPageCacheBusyTimeOutMills.
	Stalled time.Duration
	// ClientTimeout is how long a client may be silent, ScanEvery the time between two looks. Default 120 s and 10 s.
	ClientTimeout, ScanEvery time.Duration
	// LockTimeout is how long a queue stays locked without a renewal. Default 60 s.
	LockTimeout time.Duration

	// Idle closes a connection without traffic. Default 120 s. Java: serverChannelMaxIdleTimeSeconds.
	Idle time.Duration
	// MaxConns limits the connections, MaxFrame a frame in bytes. Default 10 000 and 16 MiB. Java:
	// com.rocketmq.remoting.frameMaxLength.
	MaxConns, MaxFrame int
	// TLS says how encrypted connections are treated. The zero value closes them.
	TLS TLS
	// ACL has requests be signed by an account of ACLFile, a plain_acl.yml, and permitted by it. The file is read anew when it
	// changes. Java: aclEnable.
	ACL     bool
	ACLFile string
	// Hooks see, and may refuse, what the broker does.
	Hooks Hooks
	// Client is how name servers are connected to. Default: TCP.
	Client *remoting.ClientOptions
	// Logger receives what happens to the broker, never a line per message. Default: discard.
	Logger *slog.Logger
}

// TLS is the encryption of connections, as in package namesrv.
type TLS = remoting.TLSSettings

// ErrOptions is the class of what is wrong with options.
var ErrOptions = errors.New("broker options")

// withDefaults copies, fills and checks.
func (o *Options) withDefaults() (Options, error) {
	d, errs := o.filled()
	if d.Dir == "" && d.Store.FS == nil {
		errs = append(errs, errors.New("no store directory is named (storePathRootDir)"))
	}
	return d, optionsError(errs)
}

// optionsError is nil when nothing is wrong.
func optionsError(errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

// filled copies and fills, and says what is wrong, but for a store that is not named.
func (o *Options) filled() (d Options, errs []error) {
	if o != nil {
		d = *o
	}
	d.fillIdentity()
	d.fillTimes()
	d.fillLimits()
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	d.Store.Logger = cmp.Or(d.Store.Logger, d.Logger)
	errs = d.check()
	if ip, err := d.advertised(); err != nil {
		errs = append(errs, err)
	} else {
		d.AdvertisedIP = ip.String()
		d.AdvertisedHA = cmp.Or(d.AdvertisedHA, d.AdvertisedIP)
	}
	return d, errs
}

func (o *Options) fillIdentity() {
	o.Cluster = cmp.Or(o.Cluster, "DefaultCluster")
	if o.Name == "" {
		o.Name, _ = os.Hostname() // a name that cannot be read is refused below
	}
	o.BindAddress = cmp.Or(o.BindAddress, "127.0.0.1")
	if o.Port = cmp.Or(o.Port, DefaultPort); o.Port > 0 {
		o.HAPort = cmp.Or(o.HAPort, o.Port+1)
	}
	o.Permission = cmp.Or(o.Permission, permRead|permWrite)
	o.DefaultTopicQueues = cmp.Or(o.DefaultTopicQueues, 8)
	o.TraceTopicName = cmp.Or(o.TraceTopicName, "RMQ_SYS_TRACE_TOPIC")
	o.Region = cmp.Or(o.Region, "DefaultRegion")
}

func (o *Options) fillTimes() {
	for _, v := range []struct {
		field   *time.Duration
		regular time.Duration
	}{
		{&o.RegisterEvery, 30 * time.Second},
		{&o.RegisterTimeout, 6 * time.Second},
		{&o.SaveOffsetsEvery, 5 * time.Second},
		{&o.ShortPolling, time.Second},
		{&o.Stalled, time.Second},
		{&o.ClientTimeout, 120 * time.Second},
		{&o.ScanEvery, 10 * time.Second},
		{&o.LockTimeout, time.Minute},
		{&o.Idle, 120 * time.Second},
		{&o.Store.SyncTimeout, 5 * time.Second},
	} {
		*v.field = cmp.Or(*v.field, v.regular)
	}
}

func (o *Options) fillLimits() {
	o.CountInMemory, o.CountOnDisk = cmp.Or(o.CountInMemory, 32), cmp.Or(o.CountOnDisk, 8)
	o.BytesInMemory, o.BytesOnDisk = cmp.Or(o.BytesInMemory, 256<<10), cmp.Or(o.BytesOnDisk, 64<<10)
	o.MemoryRatio = cmp.Or(o.MemoryRatio, 40)
	o.MaxSends, o.MaxHeld = cmp.Or(o.MaxSends, 10_000), cmp.Or(o.MaxHeld, 100_000)
	o.MaxPullBytes = cmp.Or(o.MaxPullBytes, 256<<20)
	o.MaxConns, o.MaxFrame = cmp.Or(o.MaxConns, 10_000), cmp.Or(o.MaxFrame, remoting.MaxFrame)
	if o.Memory == 0 {
		o.Memory = machineMemory()
	}
}

func (o *Options) check() (errs []error) {
	for _, name := range []string{o.Cluster, o.Name} {
		if !message.ValidTopic(name) || len(name) > 127 { // each is the name of a topic too
			errs = append(errs, fmt.Errorf("cluster or broker name %q: want 1 to 127 letters, digits and %%, |, - or _", name))
		}
	}
	if o.Port > 65535 {
		errs = append(errs, fmt.Errorf("port %d is above 65535", o.Port))
	}
	if o.Permission&^(permRead|permWrite) != 0 {
		errs = append(errs, fmt.Errorf("permission %d: want 2, 4 or 6", o.Permission))
	}
	if o.ACL && o.ACLFile == "" {
		errs = append(errs, errors.New("ACL (aclEnable) needs ACLFile (aclFile), the path of a plain_acl.yml"))
	}
	for _, addr := range o.NameServers {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, fmt.Errorf("name server: %w", err))
		}
	}
	for _, v := range []struct {
		name  string
		value int64
	}{
		{"ID", o.ID},
		{"DefaultTopicQueues", int64(o.DefaultTopicQueues)},
		{"RegisterEvery", int64(o.RegisterEvery)},
		{"RegisterTimeout", int64(o.RegisterTimeout)},
		{"SaveOffsetsEvery", int64(o.SaveOffsetsEvery)},
		{"ShortPolling", int64(o.ShortPolling)},
		{"CountInMemory", int64(min(o.CountInMemory, o.CountOnDisk, o.BytesInMemory, o.BytesOnDisk))},
		{"MemoryRatio", int64(o.MemoryRatio)},
		{"SendWorkers", int64(o.SendWorkers)},
		{"MaxSends", min(o.MaxSends, o.MaxHeld, o.MaxPullBytes)},
		{"ClientTimeout", int64(min(o.ClientTimeout, o.ScanEvery))},
		{"Stalled", int64(o.Stalled)},
		{"LockTimeout", int64(o.LockTimeout)},
		{"MaxConns", int64(min(o.MaxConns, o.MaxFrame))},
		{"Idle", int64(o.Idle)},
	} {
		if v.value < 0 {
			errs = append(errs, fmt.Errorf("%s %d is negative", v.name, v.value))
		}
	}
	return errs
}

// advertised is the address that others are told.
func (o *Options) advertised() (netip.Addr, error) {
	text := cmp.Or(o.AdvertisedIP, o.BindAddress)
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return ip, fmt.Errorf("advertised address %q is no IP address", text)
	case ip.IsUnspecified():
		return ip, fmt.Errorf("bound to %s, so the address to advertise must be named (brokerIP1)", text)
	}
	return ip, nil
}

// Address is where to listen, host:port.
func (o *Options) Address() (string, error) {
	d, err := o.withDefaults()
	return net.JoinHostPort(d.BindAddress, strconv.Itoa(max(d.Port, 0))), err
}
