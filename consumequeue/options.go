package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// DefaultSegmentSize is the length in bytes of a queue's files where nothing else is said: 300 000 units.
const DefaultSegmentSize = 300_000 * UnitSize

// reserveStep is how many bytes of a sparse file get blocks at first: 819 units. It bounds what a queue with few units
// takes of the disk, which counts with 100 000 of them.
const reserveStep = 16 << 10

// Options configure a [Table]. The zero value, and nil, mean the defaults below.
type Options struct {
	// SegmentSize is the length in bytes of every file of a queue, rounded up to a multiple of [UnitSize]. All queues of
	// a directory share it. Default [DefaultSegmentSize]. Java: mapedFileSizeConsumeQueue, mappedFileSizeConsumeQueue.
	SegmentSize int64
	// ReadOnly opens for reading: nothing is created or changed.
	ReadOnly bool
	// MaxHole is how many units Append fills at most when a queue offset is skipped. Default 1 << 20.
	MaxHole int64
	// Budget limits how many files are mapped at a time. Default nil: no limit.
	Budget *mappedfile.Budget
	// FileMode is the mode of new files, DirMode that of new directories. Defaults 0640 and 0750.
	FileMode, DirMode fs.FileMode
	// Logger receives holes that were filled and failures that no caller can be told of. Default: discard.
	Logger *slog.Logger
}

// withDefaults gives a checked copy with the defaults filled in.
func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	var errs []error
	if opts.SegmentSize < 0 {
		errs = append(errs, fmt.Errorf("queue segment size %d is negative", opts.SegmentSize))
	}
	if opts.SegmentSize > 1<<40 {
		errs = append(errs, fmt.Errorf("queue segment size %d is greater than 1 TiB", opts.SegmentSize))
	}
	if opts.MaxHole < 0 {
		errs = append(errs, fmt.Errorf("greatest hole of %d units is negative", opts.MaxHole))
	}
	if opts.SegmentSize == 0 {
		opts.SegmentSize = DefaultSegmentSize
	}
	opts.SegmentSize = (opts.SegmentSize + UnitSize - 1) / UnitSize * UnitSize
	if opts.MaxHole == 0 {
		opts.MaxHole = 1 << 20
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts, errors.Join(errs...)
}

// segmentOptions are those for the segments of each queue.
func (o *Options) segmentOptions() *mappedfile.Options {
	return &mappedfile.Options{
		SegmentSize: o.SegmentSize, ReadOnly: o.ReadOnly, Reserve: mappedfile.ReserveStep, Step: reserveStep,
		Budget: o.Budget, FileMode: o.FileMode, DirMode: o.DirMode, Logger: o.Logger,
	}
}
