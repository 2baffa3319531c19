package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// SnapshotTarget is the new directory of a snapshot. Names are those inside the store directory.
type SnapshotTarget interface {
	// Share makes name a clone or another name of the same file of the store. It returns errors.ErrUnsupported where neither
	// can be, and the file is copied then.
	Share(name string) error
	// Create makes a file of that size, all zeros, and the folders above it.
	Create(name string, size int64) (SnapshotFile, error)
	// Open opens a file that was created.
	Open(name string) (SnapshotFile, error)
	// Mkdir makes an empty folder.
	Mkdir(name string) error
}

// SnapshotFile is one file of a snapshot.
type SnapshotFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// Snapshot says what a snapshot holds.
type Snapshot struct {
	At     int64 `json:"at"`     // moment of looking, ms
	LogEnd int64 `json:"logEnd"` // behind the last record that is in it
	Clean  bool  `json:"clean"`  // no file abort: the broker was stopped in order
	Shared int   `json:"shared"` // files that are clones or hard links
	Copied int   `json:"copied"`
	Bytes  int64 `json:"bytes"` // copied
	// LeftOut is what lay behind the last record, in bytes that are not zero: what was being written, or torn.
	LeftOut int64 `json:"leftOut"`
}

// Snapshot makes a backup of a store that a broker may be writing to. What is derived is copied first and the log last, so that
// nothing points behind the end of the log in the backup; what the log has more is dispatched when the backup is opened.
// Files that are full and are not written any more are shared, the others copied, as far as something is in them; of
// what was being written at that moment what is not whole is left out. The file abort is copied, lock is not.
func (d *Dir) Snapshot(ctx context.Context, to SnapshotTarget, report func(Finding)) (*Snapshot, error) {
	s := &snapshotter{dir: d, to: to, report: report, out: &Snapshot{At: time.Now().UnixMilli(), Clean: !d.exists(recovery.AbortFile)}}
	for _, part := range []func(context.Context) error{s.config, s.derived, s.log, s.cut} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return s.out, nil
}

// snapshotter is one run of Snapshot.
type snapshotter struct {
	dir    *Dir
	to     SnapshotTarget
	report func(Finding)
	out    *Snapshot
	units  []string      // copied files of units
	index  []string      // copied index files
	above  []fs.FileInfo // the folders that tree is in
}

// config copies checkpoint and config, which speak of the rest: what is older vouches for less.
func (s *snapshotter) config(ctx context.Context) error {
	root, err := fs.Stat(s.dir.fsys, ".")
	if err != nil {
		return err
	}
	s.above = append(s.above, root)
	for _, name := range []string{recovery.CheckpointFile, configDir} {
		if err := s.tree(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// derived copies everything but the log.
func (s *snapshotter) derived(ctx context.Context) error {
	entries, err := s.dir.list(".")
	if err != nil {
		return err
	}
	links, err := s.foreignLinks()
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case links[e.name]:
			s.report(foreign(e.name, "a link, with a name that no store has; it is left out"))
			continue
		case e.name == commitLogDir, e.name == configDir, e.name == recovery.CheckpointFile, e.name == recovery.LockFile,
			strings.HasPrefix(e.name, "rocketstore.new."):
			continue
		}
		if err := s.tree(ctx, e.name); err != nil {
			return err
		}
	}
	return nil
}

// tree copies a file or a folder with all that is in it. What goes away meanwhile is left out.
func (s *snapshotter) tree(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := fs.Stat(s.dir.fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return s.copy(name, info.Size())
	case !info.IsDir():
		s.report(foreign(name, "no regular file; it is left out"))
		return nil
	}
	for _, above := range s.above {
		if os.SameFile(above, info) {
			s.report(foreign(name, "a link to a folder that it lies in; it is left out"))
			return nil
		}
	}
	s.above = append(s.above, info)
	defer func() { s.above = s.above[:len(s.above)-1] }()
	entries, err := s.dir.list(name)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return s.to.Mkdir(name)
	}
	last := s.lastWritten(name, entries)
	for _, e := range entries {
		child := path.Join(name, e.name)
		if start, ok := mappedfile.ParseSegmentName(e.name); ok && start < last && s.whole(child) {
			err = s.share(child, e.info.Size())
		} else {
			err = s.tree(ctx, child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whole says whether files of a folder are never written again once there is a later one. The state table of 3.1 is.
func (s *snapshotter) whole(name string) bool {
	return strings.HasPrefix(name, commitLogDir+"/") || strings.HasPrefix(name, queueDir+"/") || strings.HasPrefix(name, extDir+"/") ||
		strings.HasPrefix(name, batchQueueDir+"/") || strings.HasPrefix(name, recovery.RedoLogDir+"/")
}

// lastWritten is the start of the last segment of a folder in which something was written; -1 without one.
func (s *snapshotter) lastWritten(dir string, entries []entry) int64 {
	last := int64(-1)
	for _, e := range entries {
		start, ok := mappedfile.ParseSegmentName(e.name)
		if ok && start > last && e.info.Mode().IsRegular() && !s.dir.zeroFile(Segment{path.Join(dir, e.name), start, e.info.Size()}) {
			last = start
		}
	}
	return last
}

// share shares a file, or copies it where that cannot be.
func (s *snapshotter) share(name string, size int64) error {
	err := s.to.Share(name)
	switch {
	case err == nil:
		s.out.Shared++
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil // retention removed it meanwhile
	case errors.Is(err, errors.ErrUnsupported):
		return s.copy(name, size)
	}
	return err
}

// copy copies a file.
func (s *snapshotter) copy(name string, size int64) error {
	f, err := s.dir.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.close()
	isIndex := path.Dir(name) == indexDir && isIndexName(path.Base(name))
	if isIndex && size == 0 && !s.out.Clean {
		return nil // it is just being made
	}
	if err := s.bytes(name, f, size, size); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(name, queueDir+"/"), strings.HasPrefix(name, batchQueueDir+"/"), strings.HasPrefix(name, recovery.RedoLogDir+"/"):
		s.units = append(s.units, name)
	case isIndex:
		s.index = append(s.index, name)
	}
	return nil
}

// bytes copies the first n bytes of a file into one of that size. Zeros are not written.
func (s *snapshotter) bytes(name string, f *file, n, size int64) (err error) {
	to, err := s.to.Create(name, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	s.out.Copied++
	buf := make([]byte, 256<<10)
	for pos := int64(0); pos < n; {
		at, err := nextByte(f, pos, n)
		if err != nil {
			return err
		}
		if pos = at - at%4096; pos >= n {
			return nil
		}
		got, err := f.ReadAt(buf[:min(int64(len(buf)), n-pos)], pos)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if got == 0 {
			return nil // it became shorter
		}
		if _, err := to.WriteAt(buf[:got], pos); err != nil {
			return err
		}
		s.out.Bytes += int64(got)
		pos += int64(got)
	}
	return nil
}

// log copies the commit log, up to the last record.
func (s *snapshotter) log(ctx context.Context) error {
	entries, err := s.dir.list(commitLogDir)
	if err != nil {
		return err
	}
	segs, err := s.dir.segmentsIn(commitLogDir, func(Finding) {})
	if err != nil {
		return err
	}
	last := s.lastWritten(commitLogDir, entries)
	if len(segs) > 0 {
		s.out.LogEnd = segs[0].Start
	}
	for _, seg := range segs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if seg.Start < last {
			if err := s.share(seg.File, seg.Length); err != nil {
				return err
			}
			s.out.LogEnd = seg.End()
			continue
		}
		if seg.Start > last && s.out.LogEnd < seg.Start {
			// The log ends before this file. What was written to it meanwhile has a gap before it in the backup.
			if err := s.empty(seg); err != nil {
				return err
			}
			continue
		}
		if err := s.lastSegment(seg); err != nil {
			return err
		}
	}
	if len(segs) == 0 && len(entries) == 0 && s.dir.exists(commitLogDir) {
		return s.to.Mkdir(commitLogDir)
	}
	return nil
}

// empty makes a file of the log with nothing in it.
func (s *snapshotter) empty(seg Segment) error {
	f, err := s.to.Create(seg.File, seg.Length)
	if err != nil {
		return err
	}
	s.out.Copied++
	return f.Close()
}

// lastSegment copies the file of the log that is being written, or one made ahead.
func (s *snapshotter) lastSegment(seg Segment) error {
	l, err := s.dir.openLog(seg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.f.close()
	end := int64(0) // behind the last record, in the file
	for {
		if l.s.Next() {
			end = l.pos() + int64(l.s.Record().Size)
			continue
		}
		switch l.s.Ending() {
		case commitlog.EndBlank:
			end = seg.Length
		case commitlog.EndOfSegment:
		default:
			if errors.Is(l.s.Err(), commitlog.ErrCRC) {
				damaged := l.pos() + int64(l.s.Record().Size)
				if l.s.Resume() && l.s.Next() || l.s.Ending() == commitlog.EndBlank {
					end = max(end, damaged, l.pos()+int64(l.s.Record().Size))
					continue
				}
			} else if l.resume() {
				continue
			}
		}
		break
	}
	if err := l.s.Err(); err != nil && !errors.Is(err, mappedfile.ErrCorrupt) {
		return fmt.Errorf("%s: %w", seg.File, err)
	}
	if end > 0 {
		s.out.LogEnd = seg.Start + end
	}
	if at, err := nextByte(l.f, end, seg.Length); err == nil && at < seg.Length {
		s.out.LeftOut += dataLength(l.f, at, seg.Length)
	}
	if s.out.Clean {
		s.out.LeftOut, end = 0, seg.Length
	}
	return s.bytes(seg.File, l.f, end, seg.Length)
}

// dataLength is the number of bytes from one that is not zero to where a page of zeros begins.
func dataLength(f *file, from, size int64) int64 {
	at := from
	var page [4096]byte
	for at < size {
		n, err := f.ReadAt(page[:min(4096, size-at)], at)
		used := strings.TrimRight(string(page[:n]), "\x00")
		if at += int64(len(used)); len(used) < n || err != nil {
			break
		}
	}
	return at - from
}

// cut takes out of the copies what points behind the end of the log, or is not whole. A store that was stopped in order is copied
// as it is.
func (s *snapshotter) cut(ctx context.Context) error {
	if s.out.Clean {
		return nil
	}
	for _, name := range s.units {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.cutUnits(name); err != nil {
			return err
		}
	}
	for _, name := range s.index {
		if err := s.cutIndex(name); err != nil {
			return err
		}
	}
	return nil
}

// cutUnits clears units that are not whole, or point behind the log.
func (s *snapshotter) cutUnits(name string) (err error) {
	f, err := s.to.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size := consumequeue.UnitSize
	if strings.HasPrefix(name, batchQueueDir+"/") {
		size = consumequeue.BatchUnitSize
	}
	buf := make([]byte, 512*size)
	hole := int64(-1) // where zeros begin that have had a unit before them
	for pos := int64(0); ; pos += int64(len(buf)) {
		n, err := f.ReadAt(buf, pos)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for at := 0; at+size <= n; at += size {
			u, err := consumequeue.Decode(buf[at:])
			if err != nil {
				return err
			}
			zero, here := u == (consumequeue.Unit{}), pos+int64(at)
			switch {
			case zero && hole < 0 && here > 0:
				hole = here
			case !zero && hole >= 0:
				if err := s.fill(name, f, hole, here); err != nil {
					return err
				}
				hole = -1
			}
			if zero || u.IsFiller() || u.Size > 0 && u.PhysicalOffset >= 0 && u.PhysicalOffset < s.out.LogEnd {
				continue
			}
			if _, err := f.WriteAt(make([]byte, size), here); err != nil {
				return err
			}
		}
		if n < len(buf) {
			return nil
		}
	}
}

// fill copies a stretch of units again that was zero in the copy with units behind it: the copying passed it before it was written,
// and what came next after. What is zero in the store stays so.
func (s *snapshotter) fill(name string, to SnapshotFile, from, end int64) error {
	const most = 1 << 20
	f, err := s.dir.open(name)
	if errors.Is(err, fs.ErrNotExist) || end-from > most {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.close()
	b := make([]byte, end-from)
	n, err := f.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = to.WriteAt(b[:n], from)
	return err
}

// cutIndex makes slots that begin with an entry beyond those that the header counts begin with the one before it.
func (s *snapshotter) cutIndex(name string) (err error) {
	f, err := s.to.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	source, err := s.dir.open(name)
	if err != nil {
		return nil //nolint:nilerr // it was removed meanwhile; recovery looks at the copy
	}
	defer source.close()
	x, err := newIndexFile(name, &file{ReaderAt: f, closer: f, size: source.size}, s.dir.indexShape(), func(Finding) {})
	if err != nil || x == nil || x.dump == nil {
		return nil //nolint:nilerr // no index file; it is copied as it is
	}
	count := max(x.IndexCount, 1)
	for v, err := range x.dump.Slots() {
		if err != nil {
			break
		}
		n := v.Newest
		for n >= count && n < x.Shape.Entries {
			e, err := x.entry(n)
			if err != nil || e.Previous >= n {
				n = 0
				break
			}
			n = e.Previous
		}
		if n == v.Newest || n < 0 {
			continue
		}
		b := []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		if _, err := f.WriteAt(b, index.HeaderSize+int64(v.Slot)*index.SlotSize); err != nil {
			return err
		}
	}
	return nil
}
