package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/rocketstore/rocketstore/dialect"
)

// Options configure an [Index]. The zero value, and nil, mean the defaults below.
type Options struct {
	// Slots is the number of hash chains of a file. It is part of the directory's shape: all files share it, and none says
	// it ([InferDir] finds it). Default 5,000,000. Java: maxHashSlotNum.
	Slots int32
	// Entries is one more than the keys that a file holds, at least 2. Part of the shape as well. Default 20,000,000. Java:
	// maxIndexNum.
	Entries int32
	// Dialect is the line of RocketMQ whose rules new entries follow; reading needs none. Default 4.9.
	Dialect *dialect.Dialect
	// ReadOnly opens the files for reading, maps none and changes nothing.
	ReadOnly bool
	// FileMode is the mode of new files. Default 0640.
	FileMode fs.FileMode
	// DirMode is the mode of the directory when it is made. Default 0750.
	DirMode fs.FileMode
	// Logger receives what is rolled and dropped, never a line per message. Default: discard.
	Logger *slog.Logger
}

// withDefaults gives a checked copy with the defaults filled in.
func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Slots == 0 {
		r.Slots = DefaultSlots
	}
	if r.Entries == 0 {
		r.Entries = DefaultEntries
	}
	var errs []error
	if err := (Shape{r.Slots, r.Entries}).check(); err != nil {
		errs = append(errs, err)
	}
	if r.FileMode&^fs.ModePerm != 0 || r.DirMode&^fs.ModePerm != 0 {
		errs = append(errs, fmt.Errorf("modes %v and %v: want permission bits only", r.FileMode, r.DirMode))
	}
	if len(errs) > 0 {
		return r, fmt.Errorf("index options: %w", errors.Join(errs...))
	}
	if r.Dialect == nil {
		r.Dialect = dialect.V49()
	}
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
