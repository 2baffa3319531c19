package broker

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/properties"
)

type setting = properties.Setting[Options]

const (
	maxInt32 = math.MaxInt32
	maxInt64 = math.MaxInt64
)

// settings are the properties that mean something here, by the names of the original; the last ones are ours.
func settings() []setting {
	return append(append(identitySettings(), serviceSettings()...), storeSettings()...)
}

func identitySettings() []setting {
	text := properties.Text[Options]
	return []setting{
		text("brokerClusterName", func(o *Options) *string { return &o.Cluster }),
		text("brokerName", func(o *Options) *string { return &o.Name }),
		properties.Number("brokerId", 0, maxInt64, func(o *Options) *int64 { return &o.ID }),
		roleSetting(),
		text("brokerIP1", func(o *Options) *string { return &o.AdvertisedIP }),
		text("brokerIP2", func(o *Options) *string { return &o.AdvertisedHA }),
		text("bindAddress", func(o *Options) *string { return &o.BindAddress }),
		properties.Port("listenPort", func(o *Options) *int { return &o.Port }),
		properties.Bool("vipChannelEnable", false, func(o *Options) *bool { return &o.VIP }),
		properties.Number("haListenPort", 1, 65535, func(o *Options) *int { return &o.HAPort }),
		{Name: "namesrvAddr", Get: func(o *Options) string { return strings.Join(o.NameServers, ";") }, Set: func(o *Options, v string) error {
			o.NameServers = nil
			for addr := range strings.SplitSeq(v, ";") {
				if addr = strings.TrimSpace(addr); addr != "" {
					o.NameServers = append(o.NameServers, addr)
				}
			}
			return nil
		}},
		properties.Live(properties.Number("brokerPermission", 2, 6, func(o *Options) *int32 { return &o.Permission })),
		text("regionId", func(o *Options) *string { return &o.Region }),
		properties.Bool("aclEnable", false, func(o *Options) *bool { return &o.ACL }),
		text("aclFile", func(o *Options) *string { return &o.ACLFile }),
		text("tls.server.mode", func(o *Options) *string { return &o.TLS.Mode }),
		text("tls.server.certPath", func(o *Options) *string { return &o.TLS.CertFile }),
		text("tls.server.keyPath", func(o *Options) *string { return &o.TLS.KeyFile }),
		properties.Ignored[Options]("tls.server.keyPassword", ""),
		text("tls.server.trustCertPath", func(o *Options) *string { return &o.TLS.TrustFile }),
		text("tls.server.need.client.auth", func(o *Options) *string { return &o.TLS.ClientAuth }),
	}
}

// roleSetting is the role, of which a slave's is not to be had.
func roleSetting() setting {
	const async, sync = "ASYNC_MASTER", "SYNC_MASTER"
	return setting{Name: "brokerRole", Get: func(o *Options) string {
		if o.SyncMaster {
			return sync
		}
		return async
	}, Set: func(o *Options, v string) error {
		if v != async && v != sync {
			return fmt.Errorf("allowed: %s, %s", async, sync)
		}
		o.SyncMaster = v == sync
		return nil
	}}
}

func serviceSettings() []setting {
	yes := func(name string, field func(*Options) *bool) setting { return properties.Bool(name, false, field) }
	unless := func(name string, field func(*Options) *bool) setting { return properties.Bool(name, true, field) }
	millis := func(name string, field func(*Options) *time.Duration) setting {
		return properties.Time(name, time.Millisecond, field)
	}
	return []setting{
		properties.Number("defaultTopicQueueNums", 1, 1<<16, func(o *Options) *int32 { return &o.DefaultTopicQueues }),
		properties.Live(unless("autoCreateTopicEnable", func(o *Options) *bool { return &o.NoAutoTopics })),
		properties.Live(unless("autoCreateSubscriptionGroup", func(o *Options) *bool { return &o.NoAutoGroups })),
		unless("clusterTopicEnable", func(o *Options) *bool { return &o.NoClusterTopic }),
		unless("brokerTopicEnable", func(o *Options) *bool { return &o.NoBrokerTopic }),
		yes("traceTopicEnable", func(o *Options) *bool { return &o.TraceTopic }),
		properties.Text("msgTraceTopicName", func(o *Options) *string { return &o.TraceTopicName }),
		unless("checkTransactionMessageEnable", func(o *Options) *bool { return &o.NoTransactionChecks }),
		properties.Live(unless("traceOn", func(o *Options) *bool { return &o.NoTrace })),
		properties.Live(yes("rejectTransactionMessage", func(o *Options) *bool { return &o.RejectTransactions })),
		millis("registerNameServerPeriod", func(o *Options) *time.Duration { return &o.RegisterEvery }),
		millis("registerBrokerTimeoutMills", func(o *Options) *time.Duration { return &o.RegisterTimeout }),
		yes("compressedRegister", func(o *Options) *bool { return &o.CompressRegistration }),
		properties.Ignored[Options]("forceRegister", "true", "false"), // the full set always goes out
		millis("flushConsumerOffsetInterval", func(o *Options) *time.Duration { return &o.SaveOffsetsEvery }),
		properties.Live(unless("longPollingEnable", func(o *Options) *bool { return &o.NoLongPolling })),
		properties.Live(millis("shortPollingTimeMills", func(o *Options) *time.Duration { return &o.ShortPolling })),
		properties.Live(unless("notifyConsumerIdsChangedEnable", func(o *Options) *bool { return &o.NoNotify })),
		properties.Number("sendMessageThreadPoolNums", 0, 1<<16, func(o *Options) *int { return &o.SendWorkers }),
		properties.Live(properties.Number("sendThreadPoolQueueCapacity", 1, maxInt32, func(o *Options) *int64 { return &o.MaxSends })),
		properties.Live(millis("osPageCacheBusyTimeOutMills", func(o *Options) *time.Duration { return &o.Stalled })),
		properties.Live(properties.Number("accessMessageInMemoryMaxRatio", 1, 100, func(o *Options) *int { return &o.MemoryRatio })),
		properties.Live(properties.Number("maxTransferBytesOnMessageInMemory", 1, maxInt32, func(o *Options) *int { return &o.BytesInMemory })),
		properties.Live(properties.Number("maxTransferCountOnMessageInMemory", 1, maxInt32, func(o *Options) *int { return &o.CountInMemory })),
		properties.Live(properties.Number("maxTransferBytesOnMessageInDisk", 1, maxInt32, func(o *Options) *int { return &o.BytesOnDisk })),
		properties.Live(properties.Number("maxTransferCountOnMessageInDisk", 1, maxInt32, func(o *Options) *int { return &o.CountOnDisk })),
		properties.Time("serverChannelMaxIdleTimeSeconds", time.Second, func(o *Options) *time.Duration { return &o.Idle }),
		properties.Number("com.rocketmq.remoting.frameMaxLength", 1, maxInt32, func(o *Options) *int { return &o.MaxFrame }),
		properties.Number("maxConnections", 1, maxInt32, func(o *Options) *int { return &o.MaxConns }),
		properties.Number("maxHeldPulls", 1, maxInt32, func(o *Options) *int64 { return &o.MaxHeld }),
	}
}

func storeSettings() []setting {
	list := []setting{
		properties.Text("storePathRootDir", func(o *Options) *string { return &o.Dir }),
		{Name: "storePathCommitLog", Get: func(o *Options) string { return filepath.Join(o.Dir, "commitlog") }, Set: func(o *Options, v string) error {
			if o.Dir == "" {
				o.Dir = filepath.Dir(filepath.Clean(v))
			}
			if filepath.Clean(v) != filepath.Join(o.Dir, "commitlog") {
				return fmt.Errorf("allowed: %s, behind storePathRootDir", filepath.Join(o.Dir, "commitlog"))
			}
			return nil
		}},
		properties.Text("dialect", func(o *Options) *string { return &o.Store.Dialect }),
		properties.Number("maxHashSlotNum", 1, maxInt32, func(o *Options) *int32 { return &o.Store.IndexSlots }),
		properties.Number("maxIndexNum", 1, maxInt32, func(o *Options) *int32 { return &o.Store.IndexEntries }),
		properties.Bool("messageIndexEnable", true, func(o *Options) *bool { return &o.Store.NoIndex }),
		{Name: "flushDiskType", Get: func(o *Options) string { return flushName(o.Store.Sync) }, Set: func(o *Options, v string) error {
			switch v {
			case flushName(rocketstore.SyncInterval):
				o.Store.Sync = rocketstore.SyncInterval
			case flushName(rocketstore.SyncGroup):
				o.Store.Sync = rocketstore.SyncGroup
			default:
				return errors.New("allowed: ASYNC_FLUSH, SYNC_FLUSH")
			}
			return nil
		}},
		properties.Time("syncFlushTimeout", time.Millisecond, func(o *Options) *time.Duration { return &o.Store.SyncTimeout }),
		properties.Number("maxMessageSize", 1, maxInt32, func(o *Options) *int32 { return &o.Store.MaxMessageSize }),
		properties.Text("messageDelayLevel", func(o *Options) *string { return &o.Store.DelayLevels }),
		properties.Time("fileReservedTime", time.Hour, func(o *Options) *time.Duration { return &o.Store.Retention.MaxAge }),
		{Name: "deleteWhen", Get: func(o *Options) string { return hoursText(o.Store.Retention.Hours) }, Set: setHours},
		percent("diskMaxUsedSpaceRatio", func(o *Options) *float64 { return &o.Store.Retention.DiskRatio }),
		{Name: "cleanFileForciblyEnable", Get: func(o *Options) string { return strconv.FormatBool(o.Store.Retention.ForceRatio != 1) }, Set: setForce},
		properties.Time("deleteCommitLogFilesInterval", time.Millisecond, func(o *Options) *time.Duration { return &o.Store.Retention.Interval }),
		properties.Time("cleanResourceInterval", time.Millisecond, func(o *Options) *time.Duration { return &o.Store.Retention.Every }),
		properties.Number("deleteFileBatchMax", 1, maxInt32, func(o *Options) *int { return &o.Store.Retention.FilesPerRound }),
	}
	for _, mapped := range []string{"mapped", "maped"} { // 3.1 spells it so
		list = append(list,
			properties.Number(mapped+"FileSizeCommitLog", 4096, 1<<40, func(o *Options) *int64 { return &o.Store.SegmentSize }),
			properties.Number(mapped+"FileSizeConsumeQueue", 20, 1<<40, func(o *Options) *int64 { return &o.Store.QueueSegmentSize }))
	}
	for _, names := range [][2]string{{"transactionCheckInterval", "transactionTimeOut"}, {"checkTransactionMessageTimerInterval", "checkTransactionMessageAtleastInterval"}} { // the last two are of 3.1
		list = append(list,
			properties.Time(names[0], time.Millisecond, func(o *Options) *time.Duration { return &o.Store.Checks.Every }),
			properties.Time(names[1], time.Millisecond, func(o *Options) *time.Duration { return &o.Store.Checks.MinAge }))
	}
	return append(list,
		properties.Number("transactionCheckMax", 1, maxInt32, func(o *Options) *int { return &o.Store.Checks.Max }),
		properties.Number("tranStateTableMapedFileSize", 24, 1<<40, func(o *Options) *int64 { return &o.Store.StateSegmentSize }),
		properties.Number("tranRedoLogMapedFileSize", 20, 1<<40, func(o *Options) *int64 { return &o.Store.RedoSegmentSize }))
}

func flushName(p rocketstore.SyncPolicy) string {
	if p == rocketstore.SyncGroup {
		return "SYNC_FLUSH"
	}
	return "ASYNC_FLUSH"
}

// percent is a setting of a part of the whole, as a number from 1 to 100; 0, which is printed for none, means it is not set.
func percent(name string, field func(*Options) *float64) setting {
	return setting{Name: name, Get: func(o *Options) string { return strconv.Itoa(int(math.Round(100 * *field(o)))) }, Set: func(o *Options, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 100 {
			return errors.New("allowed: 0 (not set) to 100")
		}
		*field(o) = float64(n) / 100
		return nil
	}}
}

// setForce reads whether messages that are not old go too when the disk is nearly full.
func setForce(o *Options, v string) error {
	force, err := strconv.ParseBool(v)
	if err != nil {
		return errors.New("allowed: true, false")
	}
	o.Store.Retention.ForceRatio = 0
	if !force {
		o.Store.Retention.ForceRatio = 1
	}
	return nil
}

// setHours reads hours of the day, parted by semicolons.
func setHours(o *Options, v string) error {
	var hours []int
	for word := range strings.SplitSeq(v, ";") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 || n > 23 {
			return errors.New("allowed: hours from 00 to 23, parted by ;")
		}
		hours = append(hours, n)
	}
	o.Store.Retention.Hours = hours
	return nil
}

func hoursText(hours []int) string {
	if len(hours) == 0 {
		return "04"
	}
	words := make([]string, len(hours))
	for i, h := range hours {
		words[i] = fmt.Sprintf("%02d", h)
	}
	return strings.Join(words, ";")
}

// SetProperties reads the text of a .properties file with the names of the original into o; what it does not name stays. Properties
// that mean nothing here are returned by name. An error names property, value and what is allowed.
func (o *Options) SetProperties(text string) (unknown []string, err error) {
	return properties.Apply(o, settings(), text)
}

// Properties returns the effective settings as the text of a .properties file. A size that is 0 is what the directory has, or
// the store's default. The error says what is wrong with them; a store directory need not be named.
func (o *Options) Properties() (string, error) {
	d, errs := o.filled()
	return properties.Print(&d, settings()), optionsError(errs)
}
