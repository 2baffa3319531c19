package rocketstore

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// Options configure a [Store]. The zero value, and nil, mean the defaults below.
type Options struct {
	// FS is the file layer; nil: the directory given to Open.
	FS mappedfile.FS
	// ReadOnly opens for reading: no lock is taken, nothing is created or changed, and what recovery would mend stays as it is.
	ReadOnly bool
	// Dialect is "3.1", "4.9" or "5.3". Default: the line that wrote the directory; in a new one "4.9", whose records all lines read.
	Dialect string

	// The sizes are part of the store's shape. Zero: as the files show, in a new store the default of RocketMQ. A size
	// that contradicts the files is an error.

	// SegmentSize is the length of a commit log file in bytes. Default 1 GiB. Java: mapedFileSizeCommitLog.
	SegmentSize int64
	// QueueSegmentSize is the length of a consume queue file in bytes, rounded up to a multiple of 20. Default 6,000,000.
	QueueSegmentSize int64
	// IndexSlots and IndexEntries shape an index file. Default 5,000,000 and 20,000,000. Java: maxHashSlotNum, maxIndexNum.
	IndexSlots, IndexEntries int32

	// StateSegmentSize and RedoSegmentSize are the lengths of the files of the state table and the redo log in bytes,
	// multiples of 24 and 20. Default 48,000,000 and 40,000,000. Java: tranStateTableMapedFileSize, tranRedoLogMapedFileSize.
	StateSegmentSize, RedoSegmentSize int64
	// Transactions is the engine that keeps them. A state table in a store of 4.9 or 5.3 has to be asked for: a real broker
	// of that line does not see it.
	Transactions Engine

	// NoIndex keeps no key index. Java: messageIndexEnable.
	NoIndex bool
	// MaxMessageSize limits new messages, in bytes. Default: the dialect's.
	MaxMessageSize int32
	// StoreHost is the broker's address, part of each record. Default 127.0.0.1:10911.
	StoreHost message.Host
	// DelayLevels is messageDelayLevel. Default: the dialect's.
	DelayLevels string

	// HoldDelayed leaves delayed messages where they wait, instead of delivering them when they are due.
	HoldDelayed bool

	// Checks has the producers of open transactions asked. Default: nobody is asked.
	Checks Checks

	// Sync says when a put is acknowledged. Default commitlog.SyncInterval.
	Sync commitlog.SyncPolicy
	// SyncTimeout bounds the wait of a put under commitlog.SyncGroup, which then fails with ErrSyncTimeout. Default 5 s. Java:
	// syncFlushTimeout.
	SyncTimeout time.Duration
	// FlushEvery bounds what a power cut may lose under SyncInterval. Default: the dialect's, 500 ms or 1 s.
	FlushEvery time.Duration
	// Write is the way bytes reach the commit log's files. Default mappedfile.Mapped, and under commitlog.SyncGroup
	// mappedfile.Pwrite, of which a sync costs less (docs/performance.md); puts that wait for one sync are then written together,
	// just before it. Readers map the files in either case.
	Write mappedfile.WriteMode
	// Sparse leaves the commit log's segments without reserved blocks, but for a step ahead of writing.
	Sparse bool
	// CheckpointEvery is the period after which everything derived is synced and the checkpoint written. Default 60 s.
	CheckpointEvery time.Duration
	// MaxMapped limits the mapped segment files. Default 8192.
	MaxMapped int

	// Queued, if not nil, is told of each unit that came into a queue, once a Get finds it; not of what opening replays. It is
	// called by the dispatch, which everything behind it waits for: it must not block, nor call the store.
	Queued func(u QueuedUnit)
	// Tables are files of config/ that the caller keeps, besides those of the store. They are loaded before recovery changes
	// anything: a damaged one without a backup ends the opening. [Store.SaveTable] writes them.
	Tables []config.Table

	// Retention says when old messages are deleted. The zero value deletes nothing.
	Retention Retention
	// Recovery says what to do about damage, and more.
	Recovery recovery.Options
	// Now is the store's clock, ms since 1970 UTC. Default: the system's.
	Now func() int64
	// Logger receives what the background does and fails at, never a line per message. Default: discard.
	Logger *slog.Logger
}

func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.StoreHost.IsZero() {
		c.StoreHost = message.HostFrom(netip.MustParseAddrPort("127.0.0.1:10911"))
	}
	if c.CheckpointEvery == 0 {
		c.CheckpointEvery = time.Minute
	}
	if c.Sync == commitlog.SyncGroup && c.Write == mappedfile.Mapped {
		c.Write = mappedfile.Pwrite
	}
	if c.MaxMapped == 0 {
		c.MaxMapped = 8192
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Recovery.Logger == nil {
		c.Recovery.Logger = c.Logger
	}
	retention, errs := c.Retention.withDefaults()
	c.Retention, errs = retention, append(errs, c.Checks.validate()...)
	for _, s := range []struct {
		name  string
		value int64
	}{
		{"SegmentSize", c.SegmentSize},
		{"QueueSegmentSize", c.QueueSegmentSize},
		{"IndexSlots", int64(c.IndexSlots)},
		{"IndexEntries", int64(c.IndexEntries)},
		{"StateSegmentSize", c.StateSegmentSize},
		{"RedoSegmentSize", c.RedoSegmentSize},
		{"MaxMessageSize", int64(c.MaxMessageSize)},
		{"MaxMapped", int64(c.MaxMapped)},
		{"FlushEvery", int64(c.FlushEvery)},
		{"CheckpointEvery", int64(c.CheckpointEvery)},
	} {
		if s.value < 0 {
			errs = append(errs, fmt.Errorf("rocketstore: %s is %d, want 0 or more", s.name, s.value))
		}
	}
	return c, errors.Join(errs...)
}
