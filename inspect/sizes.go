package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// Sizes are the lengths in bytes that the files of each kind were made with, and the shape of the index. What no file
// shows is 0.
type Sizes struct {
	CommitLog    int64 `json:"commitLogFile"`
	Queue        int64 `json:"consumeQueueFile"`
	Extension    int64 `json:"consumeQueueExtFile"`
	BatchQueue   int64 `json:"batchConsumeQueueFile"`
	StateTable   int64 `json:"stateTableFile"`
	RedoLog      int64 `json:"redoLogFile"`
	IndexSlots   int32 `json:"indexSlots"`
	IndexEntries int32 `json:"indexEntries"`
}

// sizedFiles is one kind of files and the size of them in a Sizes.
type sizedFiles struct {
	size  *int64
	files func() ([]Segment, error)
}

// kinds are the kinds of files of s that are runs of segments.
func (d *Dir) kinds(s *Sizes) []sizedFiles {
	silent := func(Finding) {}
	folder := func(dir string) func() ([]Segment, error) {
		return func() ([]Segment, error) { return d.segmentsIn(dir, silent) }
	}
	tree := func(root string) func() ([]Segment, error) {
		return func() ([]Segment, error) {
			queues, _, err := d.queueTree(root, QueueFilter{}, silent)
			var all []Segment
			for _, q := range queues {
				all = append(all, q.Segments...)
			}
			return all, err
		}
	}
	return []sizedFiles{
		{&s.CommitLog, folder(commitLogDir)},
		{&s.Queue, tree(queueDir)},
		{&s.Extension, tree(extDir)},
		{&s.BatchQueue, tree(batchQueueDir)},
		{&s.StateTable, folder(recovery.StateTableDir)},
		{&s.RedoLog, folder(recovery.RedoLogDir)},
	}
}

// Sizes infers the file sizes from names and lengths, and the shape of the index from its chains. The sizes come even
// with an error, which joins what could not be read.
func (d *Dir) Sizes() (Sizes, error) {
	var s Sizes
	var errs []error
	for _, k := range d.kinds(&s) {
		files, err := k.files()
		*k.size, errs = inferSize(files), append(errs, err)
	}
	for x, err := range d.IndexFiles(context.Background(), func(Finding) {}) {
		if err == nil && (x.Known || s.IndexSlots == 0) {
			s.IndexSlots, s.IndexEntries = x.Shape.Slots, x.Shape.Entries
		}
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

// Require compares the sizes that somebody asks for with the files. A field that is 0 is not asked for. The error joins a
// [*mappedfile.CorruptError] for each contradiction; each names a file, its size and the size asked for.
func (d *Dir) Require(want Sizes) error {
	var errs []error
	want.Queue += (consumequeue.UnitSize - want.Queue%consumequeue.UnitSize) % consumequeue.UnitSize // as RocketMQ does
	for _, k := range d.kinds(&want) {
		if *k.size == 0 {
			continue
		}
		files, err := k.files()
		errs = append(errs, err)
		if s, bad := odd(files, *k.size, k.size == &want.CommitLog); bad {
			errs = append(errs, contradiction(s.File, "%d bytes, %d asked for", s.Length, *k.size))
		}
	}
	return errors.Join(append(errs, d.requireIndex(want))...)
}

// odd finds a file that was not made with a size. Where mayBeShort is set, the last one may be too short.
func odd(files []Segment, size int64, mayBeShort bool) (Segment, bool) {
	inferred := inferSize(files)
	if inferred == size {
		return Segment{}, false
	}
	for i, s := range files {
		short := mayBeShort && i == len(files)-1 && s.Length < size && s.Start%size == 0
		if s.Length == inferred && !short && s.Length != size {
			return s, true
		}
	}
	return Segment{}, false
}

// requireIndex compares the shape of the index.
func (d *Dir) requireIndex(want Sizes) error {
	if want.IndexSlots == 0 && want.IndexEntries == 0 {
		return nil
	}
	var errs []error
	for x, err := range d.IndexFiles(context.Background(), func(Finding) {}) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		asked := index.Shape{Slots: want.IndexSlots, Entries: want.IndexEntries}
		switch {
		case !x.Known && asked.Slots > 0 && asked.Entries > 0 && asked.Size() != x.Size:
			errs = append(errs, contradiction(x.File, "%d bytes, %d for %d slots and %d entries asked for",
				x.Size, asked.Size(), asked.Slots, asked.Entries))
		case x.Known && asked.Slots > 0 && asked.Slots != x.Shape.Slots:
			errs = append(errs, contradiction(x.File, "%d slots, %d asked for", x.Shape.Slots, asked.Slots))
		case x.Known && asked.Entries > 0 && asked.Entries != x.Shape.Entries:
			errs = append(errs, contradiction(x.File, "%d entries, %d asked for", x.Shape.Entries, asked.Entries))
		}
	}
	return errors.Join(errs...)
}

func contradiction(file, format string, args ...any) error {
	return &mappedfile.CorruptError{File: file, Err: fmt.Errorf(format, args...)}
}
