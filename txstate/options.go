package txstate

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Dir is where a store keeps the table.
const Dir = "transaction/statetable"

// DefaultSegmentSize is the length of a file in bytes: 2 000 000 records.
const DefaultSegmentSize = 2_000_000 * RecordSize

// Options configure a [Table]. The zero value, and nil, mean the defaults below.
type Options struct {
	// SegmentSize is the length in bytes of every file, a multiple of 24; another length is an error, where 3.1 takes it
	// and loses records (R-B-06). Default 48 000 000. Java: tranStateTableMapedFileSize.
	SegmentSize int64
	// ReadOnly opens for reading: nothing is created or changed.
	ReadOnly bool
	// MaxFill is how many empty slots one Append may fill before its record, so that a number that cannot be right does
	// not fill the disk. Fill has no such limit, nor have the slots of a first file before its first record. Default
	// 2 000 000.
	MaxFill int64
	// Budget limits the mapped files of a whole store. Default: no limit.
	Budget *mappedfile.Budget
	// FileMode and DirMode are for what is created. Default 0640 and 0750.
	FileMode, DirMode fs.FileMode
	// Logger receives what was damaged or removed, never a line per record. Default: discard.
	Logger *slog.Logger
}

// withDefaults copies, fills and checks.
func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.SegmentSize == 0 {
		out.SegmentSize = DefaultSegmentSize
	}
	if out.MaxFill == 0 {
		out.MaxFill = DefaultSegmentSize / RecordSize
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	if out.SegmentSize < 0 || out.SegmentSize%RecordSize != 0 {
		errs = append(errs, fmt.Errorf("segment size %d: must be a positive multiple of the record's %d bytes",
			out.SegmentSize, RecordSize))
	}
	if out.MaxFill < 0 {
		errs = append(errs, fmt.Errorf("most slots to fill %d: negative", out.MaxFill))
	}
	if err := errors.Join(errs...); err != nil {
		return Options{}, fmt.Errorf("transaction state table: %w", err)
	}
	return out, nil
}

func (o *Options) queue() *mappedfile.Options {
	return &mappedfile.Options{
		SegmentSize: o.SegmentSize, ReadOnly: o.ReadOnly, Budget: o.Budget,
		FileMode: o.FileMode, DirMode: o.DirMode, Logger: o.Logger,
	}
}
