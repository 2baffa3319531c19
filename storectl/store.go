package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

// reading is what the reading verbs have in common: the directory and the sizes that it should have.
type reading struct {
	sizes inspect.Sizes
}

// flags adds the flags that say what the files should be.
func (r *reading) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&r.sizes.CommitLog, "segment-size", 0, "fail unless the commit log files have this many bytes")
	f.Int64Var(&r.sizes.Queue, "queue-segment-size", 0, "fail unless the consume queue files have this many bytes")
	f.Int32Var(&r.sizes.IndexSlots, "index-slots", 0, "fail unless the index files have this many slots")
	f.Int32Var(&r.sizes.IndexEntries, "index-entries", 0, "fail unless the index files have room for this many entries")
}

// seen says when a store was looked at, if a broker may be working on it: what it does later is not in what is printed. It goes to the
// standard error.
func (a *app) seen(d *inspect.Dir, at time.Time) {
	switch {
	case d.Clean():
	case a.json:
		a.note(map[string]map[string]int64{"looked": {"at": at.UnixMilli()}}) // ms
	default:
		fmt.Fprintf(a.errOut, "looked at %s: not stopped cleanly, or running\n", clock(at.UnixMilli()))
	}
}

// with opens a store directory, or a zip or tar archive of one, for reading and gives it to f.
func (r *reading) with(name string, f func(*inspect.Dir) error) (err error) {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	fsys := os.DirFS(name)
	if info.Mode().IsRegular() {
		archive, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, archive.Close()) }()
		if fsys, err = inspect.OpenArchive(archive, info.Size()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	d, err := inspect.Open(fsys)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := d.Require(r.sizes); err != nil {
		return err
	}
	return f(d)
}
