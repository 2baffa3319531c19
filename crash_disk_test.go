package rocketstore_test

import (
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
)

// call is one changing operation on its way to the disk.
type call struct {
	op   crashfs.Op
	name string
	n    int  // of an msync: its length, which a hook may change
	skip bool // set by a hook: claim success and do nothing
}

// hooked is a file layer that shows each changing operation to its hooks before it is done.
type hooked struct {
	mappedfile.FS
	hooks   []func(*call)
	renamed sync.Map // name at creation -> name now
}

func (h *hooked) see(op crashfs.Op, name string, n int) *call {
	if now, ok := h.renamed.Load(name); ok {
		name = now.(string)
	}
	c := &call{op: op, name: name, n: n}
	for _, hook := range h.hooks {
		hook(c)
	}
	return c
}

func (h *hooked) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	if flag&os.O_CREATE != 0 {
		h.see(crashfs.OpCreate, name, 0)
		h.renamed.Delete(name)
	}
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &hookedFile{f, h}, nil
}

func (h *hooked) MkdirAll(name string, perm fs.FileMode) error {
	h.see(crashfs.OpMkdir, name, 0)
	return h.FS.MkdirAll(name, perm)
}

func (h *hooked) Rename(oldname, newname string) error {
	if h.see(crashfs.OpRename, oldname, 0).skip {
		return nil
	}
	h.renamed.Store(oldname, newname)
	return h.FS.Rename(oldname, newname)
}

func (h *hooked) Remove(name string) error {
	if h.see(crashfs.OpRemove, name, 0).skip {
		return nil
	}
	return h.FS.Remove(name)
}

func (h *hooked) SyncDir(name string) error {
	if h.see(crashfs.OpSyncDir, name, 0).skip {
		return nil
	}
	return h.FS.SyncDir(name)
}

// SyncAll is what mappedfile.SyncAll asks for first.
func (h *hooked) SyncAll() error {
	if h.see(crashfs.OpSyncAll, ".", 0).skip {
		return nil
	}
	return mappedfile.SyncAll(h.FS)
}

type hookedFile struct {
	mappedfile.File
	h *hooked
}

func (f *hookedFile) WriteAt(b []byte, off int64) (int, error) {
	if f.h.see(crashfs.OpWrite, f.Name(), len(b)).skip {
		return len(b), nil
	}
	return f.File.WriteAt(b, off)
}

func (f *hookedFile) Allocate(off, n int64) error {
	f.h.see(crashfs.OpAllocate, f.Name(), int(n))
	return f.File.Allocate(off, n)
}

func (f *hookedFile) Truncate(size int64) error {
	if f.h.see(crashfs.OpTruncate, f.Name(), int(size)).skip {
		return nil
	}
	return f.File.Truncate(size)
}

func (f *hookedFile) Sync() error {
	if f.h.see(crashfs.OpSync, f.Name(), 0).skip {
		return nil
	}
	return f.File.Sync()
}

func (f *hookedFile) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	m, err := f.File.Map(size, access)
	if err != nil {
		return nil, err
	}
	return &hookedMapping{m, f.h, f.Name()}, nil
}

type hookedMapping struct {
	mappedfile.Mapping
	h    *hooked
	name string
}

func (m *hookedMapping) SyncRange(off, n int) error {
	c := m.h.see(crashfs.OpSyncRange, m.name, n)
	if c.skip || c.n <= 0 {
		return nil
	}
	return m.Mapping.SyncRange(off, c.n)
}

// kind of goroutine.
type kind int

const (
	foreground kind = iota // the test itself, and the delay service
	ahead                  // makes segments ahead, and writes staged bytes
	dispatcher
)

// whose tells the kind of the calling goroutine by the function that it began with.
func whose() kind {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		switch {
		case strings.HasSuffix(f.Function, "mappedfile.(*background).run"):
			return ahead
		case strings.HasSuffix(f.Function, "rocketstore.(*Store).dispatch"):
			return dispatcher
		}
		if !more {
			return foreground
		}
	}
}

// turns gives the store's background its turn at the disk, so that the same seed gives the same order of operations: in a
// synctest bubble a sleep of any length ends only when all others are idle, and of two the shorter one first.
type turns struct {
	dispatcherFirst bool
	staged          bool
}

func (t turns) hook(c *call) {
	switch k := whose(); {
	case k == foreground && c.op == crashfs.OpAllocate && strings.HasPrefix(c.name, "commitlog/") && !t.staged:
		// The first append after opening has just woken the one who makes segments ahead, and may need the next one at once.
		time.Sleep(time.Millisecond)
	case k == foreground:
	case (k == dispatcher) == t.dispatcherFirst:
		time.Sleep(time.Nanosecond)
	default:
		time.Sleep(time.Microsecond)
	}
}
