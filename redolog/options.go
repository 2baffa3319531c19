package redolog

import (
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Dir is where a store keeps the log: topic TRANSACTION_REDOLOG_TOPIC_XXXX, queue 0 (R-B-19).
const Dir = "transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0"

// DefaultSegmentSize is the length of a file in bytes: 2 000 000 units.
const DefaultSegmentSize = 2_000_000 * UnitSize

// Options configure a [Log]. The zero value, and nil, mean the defaults below.
type Options struct {
	// SegmentSize is the length in bytes of every file, a multiple of 20; another length is an error, where 3.1 takes it
	// and loses units. Default 40 000 000. Java: tranRedoLogMapedFileSize.
	SegmentSize int64
	// ReadOnly opens for reading: nothing is created or changed.
	ReadOnly bool
	// Budget limits the mapped files of a whole store. Default: no limit.
	Budget *mappedfile.Budget
	// FileMode and DirMode are for what is created. Default 0640 and 0750.
	FileMode, DirMode fs.FileMode
	// Logger is handed to the files below. Default: discard.
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
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	if out.SegmentSize < 0 || out.SegmentSize%UnitSize != 0 {
		return Options{}, fmt.Errorf("transaction redo log: segment size %d: must be a positive multiple of the unit's %d bytes",
			out.SegmentSize, UnitSize)
	}
	return out, nil
}

func (o *Options) queue() *mappedfile.Options {
	return &mappedfile.Options{
		SegmentSize: o.SegmentSize, ReadOnly: o.ReadOnly, Budget: o.Budget,
		FileMode: o.FileMode, DirMode: o.DirMode, Logger: o.Logger,
	}
}
