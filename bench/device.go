package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// deviceCases measure a durable append without a store: what no store can beat on this disk.
func deviceCases(o *Options) []Case {
	var cases []Case
	for _, how := range []string{"pwrite", "mmap"} {
		for _, blocks := range []string{"sparse", "reserved", "zeroed"} {
			for _, size := range []int64{1 << 10, 4 << 10, 64 << 10} {
				if !o.Wide && (blocks == "sparse" || size == 4<<10) {
					continue
				}
				cases = append(cases, Case{
					Name: fmt.Sprintf("device/how=%s/blocks=%s/size=%d", how, blocks, size), Ops: 1, Bytes: size,
					open: func(_ context.Context, dir string) (*Run, error) {
						return openDevice(dir, how, blocks, size, o.SegmentSize)
					},
				})
			}
		}
	}
	return cases
}

// makeFile makes a file of a size with its blocks as asked.
func makeFile(fsys mappedfile.FS, name, blocks string, size int64) (mappedfile.File, error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	err = f.Truncate(size)
	if err == nil && blocks != "sparse" {
		err = f.Allocate(0, size)
	}
	if err == nil && blocks == "zeroed" {
		err = writeAll(f, make([]byte, 1<<20), size)
	}
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// writeAll fills the first size bytes of a file with copies of b.
func writeAll(f mappedfile.File, b []byte, size int64) error {
	for at := int64(0); at < size; at += int64(len(b)) {
		if _, err := f.WriteAt(b[:min(int64(len(b)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

func openDevice(dir, how, blocks string, block, size int64) (*Run, error) {
	fsys, err := mappedfile.OpenDir(dir, nil)
	if err != nil {
		return nil, err
	}
	f, err := makeFile(fsys, "device", blocks, size)
	if err != nil {
		return nil, err
	}
	b, at, syncs := (&Workload{Body: int(block)}).BodyOf(), int64(0), int64(0)
	run := &Run{Syncs: func() int64 { return syncs }, Close: f.Close}
	next := func() int64 {
		if at+block > size {
			at = 0
		}
		at += block
		syncs++
		return at - block
	}
	if how == "pwrite" {
		run.Step = func(int) error {
			if _, err := f.WriteAt(b, next()); err != nil {
				return err
			}
			return f.Sync()
		}
		return run, nil
	}
	m, err := f.Map(size, mappedfile.ReadWrite)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	run.Step = func(int) error {
		off := next()
		copy(m.Bytes()[off:], b)
		return m.SyncRange(int(off), len(b))
	}
	run.Close = func() error { return errors.Join(m.Unmap(), f.Close()) }
	return run, nil
}
