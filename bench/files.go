package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// syncCases dirty a run of pages and make them durable.
func syncCases(o *Options) []Case {
	var cases []Case
	for _, mode := range []mappedfile.WriteMode{mappedfile.Mapped, mappedfile.Pwrite} {
		for _, pages := range o.Pages {
			size := int64(pages) * mappedfile.PageSize
			cases = append(cases, Case{
				Name: fmt.Sprintf("sync/write=%s/pages=%d", modeName(mode), pages), Ops: 1, Bytes: size,
				open: func(_ context.Context, dir string) (*Run, error) {
					return openSegments(dir, &mappedfile.Options{SegmentSize: max(o.SegmentSize, size), Mode: mode, Reserve: mappedfile.ReserveWhole}, int(size), true)
				},
			})
		}
	}
	return cases
}

func modeName(m mappedfile.WriteMode) string {
	return map[mappedfile.WriteMode]string{mappedfile.Mapped: "mapped", mappedfile.Pwrite: "pwrite", mappedfile.Staged: "staged"}[m]
}

// rollCases append in pieces of a 64th of a segment, so that the slowest of a hundred steps is one that rolls.
func rollCases(*Options) []Case {
	const size = 4 << 20
	var cases []Case
	for _, reserve := range []struct {
		name string
		kind mappedfile.Reserve
	}{{"sparse", mappedfile.ReserveStep}, {"whole", mappedfile.ReserveWhole}, {"zero", mappedfile.ReserveZero}} {
		for _, ahead := range []bool{false, true} {
			o := &mappedfile.Options{SegmentSize: size, Reserve: reserve.kind, Ahead: ahead}
			if ahead {
				o.Populate = size
			}
			cases = append(cases, Case{
				Name: fmt.Sprintf("roll/reserve=%s/ahead=%t", reserve.name, ahead), Ops: 1, Bytes: size / 64,
				open: func(_ context.Context, dir string) (*Run, error) { return openSegments(dir, o, size/64, false) },
			})
		}
	}
	return cases
}

// openSegments appends pieces to a run of segments. Old ones are deleted, so that the disk does not fill.
func openSegments(dir string, o *mappedfile.Options, piece int, sync bool) (*Run, error) {
	fsys, err := mappedfile.OpenDir(dir, nil)
	if err != nil {
		return nil, err
	}
	q, err := mappedfile.Open(fsys, "segments", o)
	if err != nil {
		return nil, err
	}
	b := (&Workload{Body: piece}).BodyOf()
	return &Run{
		Step: func(int) error {
			off, err := q.Append(b)
			if err == nil && sync {
				err = q.Sync(0)
			}
			if keep := 8 * o.SegmentSize; err == nil && off%(4*o.SegmentSize) == 0 && off > keep {
				_, err = q.DeleteBefore(off - keep)
			}
			return err
		},
		Syncs: func() int64 { return q.Stats().Syncs },
		Close: q.Close,
	}, nil
}

// readCases copy pieces out of a file.
func readCases(o *Options) []Case {
	var cases []Case
	for _, how := range []string{"mapped", "pread"} {
		for _, order := range []string{"tail", "scan", "random"} {
			for _, cold := range []bool{false, true} {
				piece := int64(1 << 10)
				if order == "scan" {
					piece = 64 << 10
				}
				if cold && (order == "tail" || !canDrop) {
					continue
				}
				cases = append(cases, Case{
					Name: fmt.Sprintf("read/how=%s/order=%s/cache=%s", how, order, map[bool]string{false: "hot", true: "cold"}[cold]), Ops: 1, Bytes: piece,
					open: func(_ context.Context, dir string) (*Run, error) {
						return openReader(dir, how, order, cold, piece, o.SegmentSize)
					},
				})
			}
		}
	}
	return cases
}

func openReader(dir, how, order string, cold bool, piece, size int64) (*Run, error) {
	fsys, err := mappedfile.OpenDir(dir, nil)
	if err != nil {
		return nil, err
	}
	f, err := makeFile(fsys, "read", "zeroed", size)
	if err != nil {
		return nil, err
	}
	if err := writeAll(f, (&Workload{Body: 1 << 20}).BodyOf(), size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	m, err := f.Map(size, mappedfile.ReadOnly)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r := &reader{name: filepath.Join(dir, "read"), m: m, f: f, buf: make([]byte, piece), size: size, order: order, pread: how == "pread", cold: cold}
	return &Run{Step: r.step, Close: func() error { return errors.Join(m.Unmap(), f.Close()) }}, nil
}

type reader struct {
	name        string
	f           mappedfile.File
	m           mappedfile.Mapping
	buf         []byte
	size        int64
	order       string
	pread, cold bool
	at          int64
	state       uint64
	steps       int64
}

func (r *reader) step(int) error {
	piece := int64(len(r.buf))
	if r.steps++; r.cold && (r.steps-1)%max(r.size/piece/2, 1) == 0 {
		if err := errors.Join(r.m.Advise(0, int(r.size), mappedfile.DontNeed), drop(r.name)); err != nil {
			return err
		}
	}
	switch r.order {
	case "scan":
		r.at = (r.at + piece) % (r.size - piece + 1)
	case "tail":
		r.at = r.size - (r.steps%64+1)*piece
	default:
		r.state = r.state*6364136223846793005 + 1442695040888963407
		r.at = int64(r.state>>16) % (r.size - piece)
	}
	if r.pread {
		_, err := r.f.ReadAt(r.buf, r.at)
		return err
	}
	copy(r.buf, r.m.Bytes()[r.at:])
	return nil
}

// drop takes a file out of the page cache.
func drop(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dropCache(f), f.Close())
}
