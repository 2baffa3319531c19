package recovery

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// keepAside copies what a cut by choice takes away, or damage that is passed over, into lost+found: one file for each run of
// bytes within a segment.
func (r *runner) keepAside() error {
	var runs []Gap
	if r.d.keep.Records > 0 {
		runs = append(runs, Gap{r.d.LogEnd, r.d.keep.End})
	}
	for _, h := range r.d.holes {
		runs = append(runs, Gap{h.from, h.to})
	}
	if len(runs) == 0 {
		return nil
	}
	dir := path.Join(LostAndFound, CommitLogDir)
	if err := r.FS.MkdirAll(dir, dirPerm); err != nil {
		return err
	}
	for _, run := range runs {
		for _, s := range r.Log.Queue().Segments() {
			from, to := max(s.Start, run.From), min(s.Start+s.Length, run.To)
			if from >= to {
				continue
			}
			name := path.Join(dir, fmt.Sprintf("%s.%d", mappedfile.SegmentName(s.Start), from-s.Start))
			if err := r.copyOut(s.Start, from, to, name); err != nil {
				return fmt.Errorf("keep %s: %w", name, err)
			}
		}
	}
	return errors.Join(r.FS.SyncDir(dir), r.FS.SyncDir(LostAndFound), r.FS.SyncDir("."))
}

// copyOut writes bytes of a segment to a file of lost+found. What stands there already from an earlier recovery is never
// lost: if that was of the same bytes, and was cut off or found some of them zeroed since, the file keeps the bytes of both;
// else the next free name is taken.
func (r *runner) copyOut(segment, from, to int64, name string) error {
	v, err := r.Log.Queue().ViewSegment(segment)
	if err != nil {
		return err
	}
	defer v.Release()
	return mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()[from-segment : to-segment]
		for n, free := 1, name; ; n++ {
			if done, err := r.merge(b, free); done || err != nil {
				return err
			}
			free = fmt.Sprintf("%s.%d", name, n)
		}
	})
}

// merge writes b into a file, whose bytes, if it has any, must be the same where neither is zero; else it says false.
func (r *runner) merge(b []byte, name string) (done bool, err error) {
	f, err := r.FS.OpenFile(name, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, write := range []bool{false, true} {
		for at := 0; at < len(b); at += keepChunk {
			both, same, err := union(f, b[at:min(at+keepChunk, len(b))], int64(at))
			if err != nil || !same {
				return false, err
			}
			if write {
				if _, err := f.WriteAt(both, int64(at)); err != nil {
					return false, err
				}
			}
		}
	}
	return true, f.Sync()
}

// keepChunk is how many bytes are compared at a time.
const keepChunk = 1 << 20

// union is b with the bytes of f at the position at where b has zeros; same is false when they contradict each other.
func union(f mappedfile.File, b []byte, at int64) (both []byte, same bool, err error) {
	both = make([]byte, len(b))
	if _, err := f.ReadAt(both, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	for i, c := range b {
		switch {
		case c == 0 || both[i] == c:
		case both[i] == 0:
			both[i] = c
		default:
			return nil, false, nil
		}
	}
	return both, true, nil
}
