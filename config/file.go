package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// BackupUsed is the kind of a [Notice]: the file was missing or damaged, and its .bak was taken.
const BackupUsed = "backup used"

// Notice is what a caller should be told of a load that succeeded.
type Notice struct {
	Kind string // BackupUsed
	File string // the file that could not be used
	Text string // why
}

// DamageError says that a file is there but cannot be read, and that no .bak can stand in for it.
type DamageError struct {
	File   string // inside the store directory, with a forward slash
	Offset int64  // bytes, where reading stopped; 0 when the content and not the text is wrong
	Err    error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: offset %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap gives the reason.
func (e *DamageError) Unwrap() error { return e.Err }

// maxFile bounds what is read of a file, in bytes.
const maxFile = 256 << 20

// backup is the name of the previous content of a file.
func backup(name string) string { return name + ".bak" }

// Load fills a table from its file. Where the file is missing or damaged the .bak stands in, and the notice says so; it is
// nil otherwise. When there is neither, the table is empty. A damaged file without a good .bak is a [*DamageError] that
// names it, and the table is then empty too.
func Load[F File](fsys FS[F], t Table) (*Notice, error) {
	name := t.File()
	err := load(fsys, name, t)
	if err == nil {
		return nil, nil
	}
	if damage := (*DamageError)(nil); !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &damage) {
		return nil, err
	}
	bakErr := load(fsys, backup(name), t)
	switch {
	case bakErr == nil:
		text := "the file is missing"
		if !errors.Is(err, fs.ErrNotExist) {
			text = err.Error()
		}
		return &Notice{Kind: BackupUsed, File: name, Text: text}, nil
	case !errors.Is(bakErr, fs.ErrNotExist):
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, errors.Join(err, bakErr)
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	}
	return nil, err
}

// load fills a table from a file of that name, or leaves it empty.
func load[F File](fsys FS[F], name string, t Table) error {
	t.reset()
	b, err := readWhole(fsys, name)
	if err != nil {
		return err
	}
	v, err := parse(string(b))
	if err == nil {
		err = t.decode(&v)
	}
	if err != nil {
		t.reset()
		return damage(name, err)
	}
	return nil
}

func damage(name string, err error) error {
	e := &DamageError{File: name, Err: err}
	if syntax := (*syntaxError)(nil); errors.As(err, &syntax) {
		e.Offset = syntax.offset
	}
	return e
}

func readWhole[F File](fsys FS[F], name string) (b []byte, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxFile {
		return nil, damage(name, fmt.Errorf("%d bytes, more than %d", size, maxFile))
	}
	b = make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// Save writes a table. After a power cut its file is whole, with the old or the new content. What was readable before is in
// the .bak; a damaged file never replaces a good one there. A table that did not change is not written.
func Save[F File](fsys FS[F], t Table) error {
	v := t.encode()
	b := format(&v)
	name := t.File()
	old, err := readWhole(fsys, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if e := (*DamageError)(nil); !errors.As(err, &e) {
			return err
		}
	}
	if err == nil && bytes.Equal(old, b) {
		return nil
	}
	if err := fsys.MkdirAll("config", 0o750); err != nil {
		return err
	}
	if readable(old, t) {
		if err := replace(fsys, backup(name), old); err != nil {
			return err
		}
	}
	if err := replace(fsys, name, b); err != nil {
		return err
	}
	return errors.Join(fsys.SyncDir("config"), fsys.SyncDir("."))
}

// Freeze is a table as it is now: a copy for [Save], while the table itself may change.
func Freeze(t Table) Table { return frozen{t, t.encode()} }

type frozen struct {
	Table
	v value
}

func (f frozen) encode() value { return f.v }

// readable says whether the bytes are a table of that kind.
func readable(b []byte, t Table) bool {
	v, err := parse(string(b))
	return err == nil && t.fresh().decode(&v) == nil
}

// replace writes a file aside, syncs it and gives it its name; the directory is still to be synced.
func replace[F File](fsys FS[F], name string, b []byte) error {
	aside := name + ".tmp"
	if err := writeWhole(fsys, aside, b); err != nil {
		return err
	}
	return fsys.Rename(aside, name)
}
