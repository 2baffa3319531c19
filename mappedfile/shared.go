package mappedfile

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
)

// sharer is what an [FS] has that knows of files with several names: those of a directory and of a snapshot of it, made by hard
// links. Linked says whether a file is such a one. Opening it for writing takes it out of the sharing first: its content is
// copied, and the copy takes the name, so that what is written reaches no other name.
type sharer interface{ Linked(name string) bool }

// linked says whether a file has another name.
func linked(fsys FS, name string) bool {
	s, ok := fsys.(sharer)
	return ok && s.Linked(name)
}

// acquireToWrite is acquire for a caller that writes: a file that is shared with a snapshot is taken out of that first.
func (s *segment) acquireToWrite() (*handle, error) {
	h, err := s.acquire()
	if err != nil || !h.shared {
		return h, err
	}
	h.release()
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if h := s.h.Load(); h != nil && !h.shared && h.tryAcquire() {
		return h, nil
	}
	if s.gone != nil {
		return nil, s.gone
	}
	s.drop() // views of the old file go on to see what was there
	f, err := s.q.fsys.OpenFile(s.name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return s.adopt(f, ReadWrite)
}

// Linked says whether a file has another name, as one of a directory of which a snapshot was made.
func (d *osFS) Linked(name string) bool {
	info, err := d.root.Stat(filepath.FromSlash(name))
	return err == nil && info.Mode().IsRegular() && links(info) > 1
}

// unshare copies a file that has another name, and gives the copy the name. It closes f, and opens the copy.
func (d *osFS) unshare(name string, f *os.File, flag int) (_ *os.File, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	aside := filepath.FromSlash(asideName(name))
	to, err := d.root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return nil, errors.Join(d.located(name, err), f.Close())
	}
	_, err = io.Copy(to, io.NewSectionReader(f, 0, info.Size()))
	if err == nil {
		err = syncFile(to)
	}
	if err = errors.Join(err, to.Close(), f.Close()); err == nil {
		err = d.Rename(filepath.ToSlash(aside), name)
	}
	if err == nil {
		err = d.SyncDir(path.Dir(name))
	}
	if err != nil {
		return nil, errors.Join(err, d.root.Remove(aside))
	}
	return d.openRegular(name, flag&^(os.O_CREATE|os.O_TRUNC|os.O_EXCL), 0)
}
