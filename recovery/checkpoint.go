package recovery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// Names of the files in the root of a store.
const (
	CheckpointFile = "checkpoint"
	AbortFile      = "abort"
	LockFile       = "lock"
)

// CheckpointSize is the length of the checkpoint file in bytes.
const CheckpointSize = 4096

// checkpointFields is how many of its bytes have a meaning in any version.
const checkpointFields = 40

// Checkpoint is what the file of that name holds; times are store times in ms. The layout is in the package comment.
type Checkpoint struct {
	Physic, Logics, Index        int64
	MasterFlushed, ConfirmOffset int64
}

// DecodeCheckpoint reads a checkpoint's bytes.
func DecodeCheckpoint(b []byte) (Checkpoint, error) {
	if len(b) < checkpointFields {
		return Checkpoint{}, fmt.Errorf("checkpoint has %d bytes, want %d", len(b), CheckpointSize)
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
	return Checkpoint{at(0), at(8), at(16), at(24), at(32)}, nil
}

// AppendTo appends the checkpoint's 40 bytes that have a meaning to b.
func (c Checkpoint) AppendTo(b []byte) []byte {
	for _, v := range []int64{c.Physic, c.Logics, c.Index, c.MasterFlushed, c.ConfirmOffset} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// Min is the store time up to which log and queues are known to be durable, less the dialect's margin.
func (c Checkpoint) Min(d *dialect.Dialect) int64 {
	return max(0, min(c.Physic, c.Logics)-d.CheckpointMargin)
}

// ReadCheckpoint reads the checkpoint of a store. A missing one is all zero; one that is too short is too, and damaged says so.
func ReadCheckpoint(fsys mappedfile.FS) (c Checkpoint, damaged error, err error) {
	f, err := fsys.OpenFile(CheckpointFile, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, nil, nil
	}
	if err != nil {
		return Checkpoint{}, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, checkpointFields)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Checkpoint{}, nil, err
	}
	c, damaged = DecodeCheckpoint(b[:n])
	if damaged != nil {
		damaged = &mappedfile.CorruptError{File: CheckpointFile, Err: damaged}
	}
	return c, damaged, nil
}

// WriteCheckpoint writes the checkpoint in place and syncs it; bytes behind the known fields stay as they are.
func WriteCheckpoint(fsys mappedfile.FS, c Checkpoint, perm fs.FileMode) (err error) {
	f, err := fsys.OpenFile(CheckpointFile, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size < CheckpointSize {
		if err := f.Truncate(CheckpointSize); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(c.AppendTo(nil), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if size == 0 {
		return fsys.SyncDir(".")
	}
	return nil
}

// Aborted says whether the abort file is there.
func Aborted(fsys mappedfile.FS) (bool, error) {
	f, err := fsys.OpenFile(AbortFile, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// MarkOpen makes the abort file, durably. It is the first thing that opening for writing does to a directory.
func MarkOpen(fsys mappedfile.FS, d *dialect.Dialect, perm fs.FileMode) (err error) {
	f, err := fsys.OpenFile(AbortFile, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if d.AbortHoldsPID {
		pid := strconv.Itoa(os.Getpid())
		if err := f.Truncate(int64(len(pid))); err != nil {
			return err
		}
		if _, err := f.WriteAt([]byte(pid), 0); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return fsys.SyncDir(".")
}

// MarkClosed removes the abort file, durably. It is the last thing that a clean stop does.
func MarkClosed(fsys mappedfile.FS) error {
	if err := fsys.Remove(AbortFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.SyncDir(".")
}
