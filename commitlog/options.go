package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// SyncPolicy says when an append is acknowledged.
type SyncPolicy int

// The policies.
const (
	// SyncInterval acknowledges at once and syncs in the background; a power cut may lose the last FlushEvery. Java: ASYNC_FLUSH.
	SyncInterval SyncPolicy = iota
	// SyncGroup acknowledges after the record is on the device; one sync serves all who wait. Java: SYNC_FLUSH.
	SyncGroup
)

// Options configure a [Log]. The zero value, and nil, mean the defaults below.
type Options struct {
	// Dir is the log's directory in the store. Default "commitlog".
	Dir string
	// SegmentSize is the length in bytes of every segment file, at least 4096. It is part of the store's shape: all
	// files of one directory share it. Default 1 GiB. Java: mapedFileSizeCommitLog.
	SegmentSize int64
	// ReadOnly opens for reading: nothing is created or changed.
	ReadOnly bool
	// Sync says when an append is acknowledged. Default SyncInterval.
	Sync SyncPolicy
	// FlushEvery is the period of the background sync. Default 500 ms. Java: flushIntervalCommitLog.
	FlushEvery time.Duration
	// FlushPages is how many 4096-byte pages must be dirty for the background sync. Default 4. Java: flushCommitLogLeastPages.
	FlushPages int
	// FlushThorough is the period after which the background syncs whatever is dirty. Default 10 s.
	FlushThorough time.Duration
	// SyncTimeout bounds the wait of each append under SyncGroup for its sync. Default 5 s. Java: syncFlushTimeout.
	SyncTimeout time.Duration
	// Write is the way bytes reach the file. Default mappedfile.Mapped. With mappedfile.Pwrite and SyncGroup appends that wait for
	// one sync are written by one write, just before it; readers see them then.
	Write mappedfile.WriteMode
	// Reserve is how a segment's blocks are reserved. Default: the whole segment, when it is made.
	Reserve mappedfile.Reserve
	// Populate is how many bytes ahead of the end are faulted in by the background. Default 0: none.
	Populate int64
	// ZeroAhead is how many bytes ahead of the end the background keeps written with zeros. Default 0: none.
	ZeroAhead int64
	// Sparse leaves segments without reserved blocks but for a step ahead of writing; Reserve then has no meaning.
	Sparse bool
	// NoAhead stops the background from making the next segment before it is needed.
	NoAhead bool
	// TrustCRC leaves out the check of a body's CRC when a record is read.
	TrustCRC bool
	// Now is the store's clock, milliseconds since 1970 UTC. Default: the system's.
	Now func() int64
	// Budget limits mapped segments; it may be shared with other structures. Default: no limit.
	Budget *mappedfile.Budget
	// FileMode and DirMode are the permissions of what is created. Default 0640 and 0750.
	FileMode, DirMode fs.FileMode
	// Logger receives flush failures, never a line per message. Default: discard.
	Logger *slog.Logger
}

// MinSegmentSize is the least length in bytes of a segment: a whole page, and room for a record.
const MinSegmentSize = mappedfile.PageSize

func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Dir == "" {
		c.Dir = "commitlog"
	}
	if c.SegmentSize == 0 {
		c.SegmentSize = 1 << 30
	}
	if c.FlushEvery == 0 {
		c.FlushEvery = 500 * time.Millisecond
	}
	if c.FlushPages == 0 {
		c.FlushPages = 4
	}
	if c.FlushThorough == 0 {
		c.FlushThorough = 10 * time.Second
	}
	if c.SyncTimeout == 0 {
		c.SyncTimeout = 5 * time.Second
	}
	if c.Reserve == mappedfile.ReserveStep {
		c.Reserve = mappedfile.ReserveWhole
	}
	if c.Sparse {
		c.Reserve = mappedfile.ReserveStep
	}
	if c.Now == nil {
		c.Now = new(clock).now // which appendMu guards
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	if c.SegmentSize < MinSegmentSize {
		errs = append(errs, fmt.Errorf("commitlog: SegmentSize %d: at least %d", c.SegmentSize, MinSegmentSize))
	}
	if c.FlushEvery < 0 || c.FlushPages < 0 || c.FlushThorough < 0 || c.SyncTimeout < 0 {
		errs = append(errs, errors.New("commitlog: a flush option is negative"))
	}
	return c, errors.Join(errs...)
}
