package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// chunk is how many bytes are copied at a time.
const chunk = 1 << 20

// begin makes the journal of a repair, with all that its steps need, durable. From then on the repair can be finished and
// undone, whatever happens.
func (j *Journal) begin(ctx context.Context, fsys mappedfile.FS) error {
	if err := fsys.MkdirAll(j.Dir(), dirPerm); err != nil {
		return err
	}
	for i := range j.Steps {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := j.stage(fsys, i); err != nil {
			return fmt.Errorf("%s: %w", j.Steps[i].File, err)
		}
	}
	// The folder's own name must be there before the journal's.
	if err := errors.Join(fsys.SyncDir(j.Dir()), fsys.SyncDir(recovery.LostAndFound), fsys.SyncDir(".")); err != nil {
		return err
	}
	return j.save(fsys, Begun)
}

// stage writes what step i needs into the journal's folder.
func (j *Journal) stage(fsys mappedfile.FS, i int) error {
	s := &j.Steps[i]
	saved, fresh := "old."+strconv.Itoa(i), "new."+strconv.Itoa(i)
	switch s.Op {
	case Move:
		s.To = path.Join(j.Dir(), "aside", s.File)
	case Patch:
		s.Saved = saved
		if err := copyOut(fsys, s.File, s.Offset, s.Length, path.Join(j.Dir(), saved)); err != nil {
			return err
		}
		if s.content != nil {
			s.Bytes = fresh
			return writeFile(fsys, path.Join(j.Dir(), fresh), s.content)
		}
	case Place:
		s.Bytes = fresh
		if s.source == nil {
			return writeFile(fsys, path.Join(j.Dir(), fresh), s.content)
		}
		return s.copyIn(fsys, path.Join(j.Dir(), fresh))
	case Resize:
	}
	return nil
}

// copyIn copies the step's source.
func (s *Step) copyIn(fsys mappedfile.FS, to string) (err error) {
	src, err := s.source()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	size, err := src.Size()
	if err != nil {
		return err
	}
	return copyBytes(fsys, src, 0, size, to)
}

// copyOut copies a stretch of a file of the store.
func copyOut(fsys mappedfile.FS, name string, off, n int64, to string) (err error) {
	src, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return copyBytes(fsys, src, off, n, to)
}

// copyBytes makes a file of n bytes of another one. Zeros become a hole where the file system has such.
func copyBytes(fsys mappedfile.FS, src io.ReaderAt, off, n int64, to string) (err error) {
	dst, err := fsys.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if err := dst.Truncate(n); err != nil {
		return err
	}
	b := make([]byte, min(n, chunk))
	for at := int64(0); at < n; {
		part := b[:min(int64(len(b)), n-at)]
		if got, err := src.ReadAt(part, off+at); got < len(part) {
			return errors.Join(io.ErrUnexpectedEOF, err)
		}
		if !mappedfile.AllZero(part) {
			if _, err := dst.WriteAt(part, at); err != nil {
				return err
			}
		}
		at += int64(len(part))
	}
	return dst.Sync()
}

// finish does all steps, those that were done before the crash too.
func (j *Journal) finish(fsys mappedfile.FS) error {
	for i := range j.Steps {
		s := &j.Steps[i]
		if err := j.do(fsys, s); err != nil {
			return fmt.Errorf("step %d, %s %s: %w", i, s.Op, s.File, err)
		}
	}
	var err error
	if j.After, err = fingerprint(fsys); err != nil {
		return err
	}
	return j.save(fsys, Done)
}

func (j *Journal) do(fsys mappedfile.FS, s *Step) error {
	switch s.Op {
	case Move:
		return rename(fsys, s.File, s.To)
	case Place:
		return rename(fsys, path.Join(j.Dir(), s.Bytes), s.File)
	case Patch:
		from := ""
		if s.Bytes != "" {
			from = path.Join(j.Dir(), s.Bytes)
		}
		return overwrite(fsys, s, from)
	case Resize:
		return resize(fsys, s.File, s.NewSize)
	}
	return nil
}

// undo undoes all steps, the last one first.
func (j *Journal) undo(fsys mappedfile.FS) error {
	if err := j.save(fsys, Undoing); err != nil {
		return err
	}
	for i := len(j.Steps) - 1; i >= 0; i-- {
		s := &j.Steps[i]
		if err := j.takeBack(fsys, s); err != nil {
			return fmt.Errorf("undo of step %d, %s %s: %w", i, s.Op, s.File, err)
		}
	}
	return j.save(fsys, Undone)
}

func (j *Journal) takeBack(fsys mappedfile.FS, s *Step) error {
	switch s.Op {
	case Move:
		return rename(fsys, s.To, s.File)
	case Place:
		return rename(fsys, s.File, path.Join(j.Dir(), s.Bytes))
	case Patch:
		return overwrite(fsys, s, path.Join(j.Dir(), s.Saved))
	case Resize:
		return resize(fsys, s.File, s.Size)
	}
	return nil
}

// rename gives a file another name, durably. It does nothing when that was done before: the file is gone, or there is one
// of the new name, in whose way no step leaves another.
func rename(fsys mappedfile.FS, from, to string) error {
	there, err := exists(fsys, from)
	if err != nil || !there {
		return err
	}
	taken, err := exists(fsys, to)
	if err != nil || taken {
		return err
	}
	if err := makeDirs(fsys, path.Dir(to)); err != nil {
		return err
	}
	if err := fsys.Rename(from, to); err != nil {
		return err
	}
	// The new name first: a crash between leaves two names rather than none.
	return errors.Join(fsys.SyncDir(path.Dir(to)), fsys.SyncDir(path.Dir(from)))
}

// makeDirs makes a folder and makes the names of all that lead to it durable.
func makeDirs(fsys mappedfile.FS, dir string) error {
	if err := fsys.MkdirAll(dir, dirPerm); err != nil {
		return err
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if err := fsys.SyncDir(path.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

func exists(fsys mappedfile.FS, name string) (bool, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// overwrite writes the bytes of the file from, or zeros when it is "", where the step says.
func overwrite(fsys mappedfile.FS, s *Step, from string) (err error) {
	dst, err := fsys.OpenFile(s.File, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	var src io.ReaderAt
	if from != "" {
		f, err := fsys.OpenFile(from, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		src = f
	}
	b := make([]byte, min(s.Length, chunk))
	for at := int64(0); at < s.Length; {
		part := b[:min(int64(len(b)), s.Length-at)]
		if src != nil {
			if got, err := src.ReadAt(part, at); got < len(part) {
				return errors.Join(io.ErrUnexpectedEOF, err)
			}
		}
		if _, err := dst.WriteAt(part, s.Offset+at); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return dst.Sync()
}

func resize(fsys mappedfile.FS, name string, size int64) (err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}
