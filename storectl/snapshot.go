package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

// errSnapshotTo says where a snapshot may be made.
var errSnapshotTo = errors.New("it is there already: a snapshot makes a new directory")

func (a *app) snapshot() *cobra.Command {
	var r reading
	var to, share string
	ways := []string{"auto", "clone", "link", "copy"}
	cmd := &cobra.Command{
		Use:   "snapshot DIR --to NEW",
		Short: "Make a backup of a store, also while a broker works on it",
		Long: `Make a backup of a store in the directory NEW, also while a broker works on DIR. Files that are full are clones
(where the file system can) or hard links, so that they take no room; what is still being written is copied up to
the last record. Nothing in the backup points behind the end of its log; what the queues do not have yet is dispatched
when the backup is opened. The folder appears under its name when it is complete.

A hard link is one file with two names. rocketstore takes a file out of that before it writes to it, in either
directory. The original does not: give it a backup made with --share clone or copy.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(ways, share) {
				return fmt.Errorf("--share %s: want auto, clone, link or copy", share)
			}
			if _, err := os.Lstat(to); err == nil {
				return fmt.Errorf("%s: %w", to, errSnapshotTo)
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				t := &snapshotDir{from: args[0], to: filepath.Clean(to) + ".partial", share: share}
				if err := os.Mkdir(t.to, 0o750); err != nil {
					return err
				}
				s, err := d.Snapshot(cmd.Context(), t, a.finding)
				if err == nil {
					err = t.finish(to)
				}
				if err != nil {
					return errors.Join(fmt.Errorf("snapshot of %s: %w", args[0], err), os.RemoveAll(t.to))
				}
				return a.table(column{"LOG END", -14}, column{"SHARED", -8}, column{"COPIED", -8}, column{"BYTES", -14}, column{"LEFT OUT", -10}, column{"LOOKED AT", 0}).
					row(s, s.LogEnd, s.Shared, s.Copied, s.Bytes, s.LeftOut, clock(s.At))
			})
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "directory to make")
	cmd.Flags().StringVar(&share, "share", "auto", "how full files are shared: auto, clone, link or copy")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// snapshotDir is the directory of a snapshot that is being made.
type snapshotDir struct {
	from, to string
	share    string
}

// path is where a file is made, after the folders above it.
func (s *snapshotDir) path(name string) (string, error) {
	p := filepath.Join(s.to, filepath.FromSlash(name))
	return p, os.MkdirAll(filepath.Dir(p), 0o750)
}

// Share implements inspect.SnapshotTarget.
func (s *snapshotDir) Share(name string) error {
	if s.share == "copy" {
		return errors.ErrUnsupported
	}
	// Where a name of the store is a link, the file behind it is meant.
	source, err := filepath.EvalSymlinks(filepath.Join(s.from, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return errors.ErrUnsupported // an archive
	}
	p, err := s.path(name)
	if err != nil {
		return err
	}
	if s.share != "link" {
		err := cloneFile(source, p)
		if err == nil || errors.Is(err, fs.ErrNotExist) || s.share == "clone" {
			return err
		}
	}
	err = os.Link(source, p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.ErrUnsupported // another file system, or one without hard links
	}
	return err
}

// Create implements inspect.SnapshotTarget.
func (s *snapshotDir) Create(name string, size int64) (inspect.SnapshotFile, error) {
	p, err := s.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return syncedFile{f}, nil
}

// Open implements inspect.SnapshotTarget.
func (s *snapshotDir) Open(name string) (inspect.SnapshotFile, error) {
	f, err := os.OpenFile(filepath.Join(s.to, filepath.FromSlash(name)), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return syncedFile{f}, nil
}

// Mkdir implements inspect.SnapshotTarget.
func (s *snapshotDir) Mkdir(name string) error {
	return os.MkdirAll(filepath.Join(s.to, filepath.FromSlash(name)), 0o750)
}

// finish makes the names durable, and gives the folder its own.
func (s *snapshotDir) finish(name string) error {
	err := filepath.WalkDir(s.to, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = syncFolder(p)
		}
		return err
	})
	if err == nil {
		err = os.Rename(s.to, name)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(filepath.Clean(name)))
	}
	return err
}

// syncedFile is durable when it is closed.
type syncedFile struct{ *os.File }

// Close implements io.Closer.
func (f syncedFile) Close() error { return errors.Join(f.Sync(), f.File.Close()) }
