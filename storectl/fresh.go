package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// freshStore is a directory in which a store may have to be made.
type freshStore struct {
	dir  string
	made []string // folders that are not there yet, the innermost first
	held bool     // it holds something already
}

// whatIsLeft are the names that a store may have in its root though it holds nothing yet.
func whatIsLeft() []string {
	return []string{recovery.LockFile, recovery.AbortFile, recovery.CheckpointFile, "config", recovery.LostAndFound}
}

// freshAt looks at a directory. One that holds files, but no store, is an error: it is likely to be another one than was meant.
func freshAt(dir string) (*freshStore, error) {
	n := &freshStore{dir: filepath.Clean(dir)}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		for at := n.dir; errors.Is(err, fs.ErrNotExist); at = filepath.Dir(at) {
			n.made = append(n.made, at)
			_, err = os.Stat(filepath.Dir(at))
		}
		return n, err
	}
	if err != nil || len(entries) == 0 {
		return n, err
	}
	n.held = true
	fsys, err := mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	id, err := recovery.Identify(fsys)
	if errors.Is(err, mappedfile.ErrCorrupt) {
		return n, nil // there is a store; opening it says what is wrong
	}
	if err != nil || !id.Empty {
		return n, err
	}
	for _, e := range entries {
		if !slices.Contains(whatIsLeft(), e.Name()) {
			return nil, fmt.Errorf("%s: holds no store, but other files (%s): give an empty directory, or one that is not there", dir, e.Name())
		}
	}
	return n, nil
}

// undo removes what opening a store made in a directory that held nothing. The store must be closed.
func (n *freshStore) undo() error {
	if n.held {
		return nil
	}
	var errs []error
	for _, name := range append(whatIsLeft(), recovery.CommitLogDir, recovery.QueueDir, recovery.IndexDir, filepath.Dir(recovery.StateTableDir)) {
		errs = append(errs, os.RemoveAll(filepath.Join(n.dir, name)))
	}
	for _, dir := range n.made {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
