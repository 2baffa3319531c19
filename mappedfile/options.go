package mappedfile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"
)

// Options configure a [Queue]. SegmentSize is required; for the rest the zero value means the default.
type Options struct {
	// SegmentSize is the length in bytes of every file of the directory.
	SegmentSize int64
	// ReadOnly maps for reading, creates nothing and changes nothing.
	ReadOnly bool
	// Reserve says how the blocks of a segment are made sure of before they are written. Default [ReserveStep].
	Reserve Reserve
	// Step is the unit in bytes in which [ReserveStep] reserves, and what it begins with, rounded up to whole pages. Default 64 KiB.
	Step int64
	// Ahead has a background goroutine make the next segment, so that rolling to it only takes it.
	Ahead bool
	// Populate is how many bytes ahead of the end the background keeps faulted in for writing, or, where that is slow and Reserve is not
	// [ReserveStep], written with zeros. It needs Ahead. Default 0: none.
	Populate int64
	// ZeroAhead is how many bytes ahead of the end the background keeps written with zeros, in quarters. The next sync takes them to
	// the device, and syncs of what is written over them later change no metadata. The segment made ahead is zeroed as a whole,
	// at the pace of the appends. It needs Ahead and another Reserve than [ReserveStep]. Default 0: none.
	ZeroAhead int64
	// LockMemory keeps new segments in memory (mlock) until they are unmapped. What the system refuses is logged.
	LockMemory bool
	// Mode is how bytes get into the file. Default [Mapped].
	Mode WriteMode
	// HeadLast is how many bytes at the front of what one Append writes reach a [Mapped] file after the rest, so that a process
	// that is killed in between leaves a front of zeros and not a beginning without its end. Default 0: the order is open.
	HeadLast int
	// StageEvery is how often the background commits what [Staged] holds back. Default 200 ms. Java: commitIntervalCommitLog.
	StageEvery time.Duration
	// StageSize is the size in bytes of each of the two buffers of [Staged]. Default 4 MiB, at most SegmentSize.
	StageSize int
	// Committed is called when more bytes have become readable under [Staged], by [Queue.Commit] or since there was no room for them
	// in the buffer. It must not block, nor call the queue.
	Committed func()
	// Budget limits the mapped segments of all queues that share it. Default nil: no limit.
	Budget *Budget
	// FileMode is the mode of new files. Default 0640.
	FileMode fs.FileMode
	// DirMode is the mode of new directories. Default 0750.
	DirMode fs.FileMode
	// Logger receives what goes wrong where nobody can be told by an error. Default: discard.
	Logger *slog.Logger
}

// Reserve is how the blocks of a new segment are reserved, so that a full disk is an error and never a signal.
type Reserve int

// The ways to reserve.
const (
	// ReserveStep makes a sparse file and reserves blocks by File.Allocate before they are written: Step bytes, then as much as the
	// file has of them, up to 1 MiB at a time.
	ReserveStep Reserve = iota
	// ReserveWhole allocates the whole segment when it is made.
	ReserveWhole
	// ReserveZero writes zeros over the whole segment when it is made, so that later syncs change no metadata.
	ReserveZero
)

// WriteMode is how appended bytes reach the file. Readers always map it.
type WriteMode int

// The write modes.
const (
	// Mapped copies into the mapping; Sync is a ranged msync.
	Mapped WriteMode = iota
	// Pwrite writes with File.WriteAt; Sync is File.Sync.
	Pwrite
	// Staged collects bytes on the heap until [Queue.Commit] writes them with File.WriteAt; readers see committed bytes only.
	Staged
)

const (
	defaultStep       = 64 << 10
	defaultStageEvery = 200 * time.Millisecond
	defaultStageSize  = 4 << 20
)

// withDefaults gives a checked copy with the defaults filled in.
func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	var errs []error
	if r.SegmentSize <= 0 {
		errs = append(errs, fmt.Errorf("segment size %d, must be positive", r.SegmentSize))
	}
	if r.Reserve < ReserveStep || r.Reserve > ReserveZero {
		errs = append(errs, fmt.Errorf("unknown way to reserve %d", r.Reserve))
	}
	if r.Mode < Mapped || r.Mode > Staged {
		errs = append(errs, fmt.Errorf("unknown write mode %d", r.Mode))
	}
	if r.Step < 0 || r.Populate < 0 || r.ZeroAhead < 0 || r.HeadLast < 0 || r.StageEvery < 0 || r.StageSize < 0 {
		errs = append(errs, errors.New("negative Step, Populate, ZeroAhead, HeadLast, StageEvery or StageSize"))
	}
	if len(errs) > 0 {
		return r, fmt.Errorf("mappedfile options: %w", errors.Join(errs...))
	}
	if r.Step == 0 {
		r.Step = defaultStep
	}
	r.Step = min((r.Step+PageSize-1)/PageSize*PageSize, 1<<40)
	if r.StageEvery == 0 {
		r.StageEvery = defaultStageEvery
	}
	if r.StageSize == 0 {
		r.StageSize = defaultStageSize
	}
	r.StageSize = int(min(int64(r.StageSize), r.SegmentSize))
	if r.FileMode == 0 {
		r.FileMode = 0o640
	}
	if r.DirMode == 0 {
		r.DirMode = 0o750
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	return r, nil
}
