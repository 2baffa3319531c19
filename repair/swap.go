package repair

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// Swap puts what a rebuild made in another directory ([inspect.Dir.Rebuild]) in the place of what the store has: each of the
// trees that are there, consume queues, index, state table, redo log, and the checkpoint. What a rebuild made of one queue
// only takes the place of that queue. The other directory stays as it is.
func (r *Repair) Swap(ctx context.Context, made mappedfile.FS) (*Journal, error) {
	p := &plan{Repair: r}
	part, err := inspect.ReadRebuilt(readFS{made})
	if err != nil {
		return nil, err
	}
	if part.To > 0 || part.From > 0 {
		if err := p.patchQueues(ctx, made, part); err != nil {
			return nil, err
		}
		return r.run(ctx, "swap", nextCheck, p.steps)
	}
	trees := []string{recovery.QueueDir, recovery.IndexDir, recovery.StateTableDir, recovery.RedoLogDir}
	if part.Topic != "" {
		trees = []string{part.Tree()}
	}
	for _, tree := range trees {
		fresh, err := files(made, tree)
		if err != nil {
			return nil, err
		}
		if len(fresh) == 0 {
			continue
		}
		old, err := files(r.fsys, tree)
		if err != nil {
			return nil, err
		}
		for _, name := range old {
			p.steps = append(p.steps, Step{Op: Move, File: name, Why: "made again"})
		}
		for _, name := range fresh {
			p.place(made, name, name, "made again")
		}
	}
	if there, err := exists(made, recovery.CheckpointFile); err != nil {
		return nil, err
	} else if there {
		p.moveIf(recovery.CheckpointFile, "made again")
		p.place(made, recovery.CheckpointFile, recovery.CheckpointFile, "made again")
	}
	if p.err != nil {
		return nil, p.err
	}
	return r.run(ctx, "swap", nextCheck, p.steps)
}

const nextCheck = "check the store again"

// files lists the regular files below a folder, none when it is not there.
func files(fsys mappedfile.FS, dir string) ([]string, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			below, err := files(fsys, name)
			if err != nil {
				return nil, err
			}
			names = append(names, below...)
		case e.Type().IsRegular() && !strings.HasPrefix(e.Name(), "."):
			names = append(names, name)
		}
	}
	return names, nil
}

// patchQueues puts the units that a rebuild made of a range of the log into the queues. Queue files that the store does not
// have are taken over as they are.
func (p *plan) patchQueues(ctx context.Context, made mappedfile.FS, part inspect.RebuiltPart) error {
	dir, err := inspect.Open(readFS{made})
	if err != nil {
		return err
	}
	placed := ""
	for u, err := range dir.Queues(ctx, inspect.QueueFilter{}, func(inspect.Finding) {}) {
		if err != nil {
			return err
		}
		if u.IsFiller() || u.Batch != nil || u.PhysicalOffset < part.From || u.File == placed {
			continue
		}
		size, err := sizeOf(p.fsys, u.File)
		if err != nil {
			return err
		}
		if size < u.Offset+consumequeue.UnitSize {
			placed = u.File
			p.moveIf(u.File, "too short")
			p.place(made, u.File, u.File, "made again")
			continue
		}
		p.patchUnit(u)
	}
	return errors.Join(ctx.Err(), p.err)
}

// patchUnit writes a unit; those in a row are one step.
func (p *plan) patchUnit(u inspect.QueueUnit) {
	if n := len(p.steps); n > 0 {
		s := &p.steps[n-1]
		if s.Op == Patch && s.File == u.File && s.Offset+s.Length == u.Offset && s.Length < fillPart {
			s.content = u.AppendTo(s.content)
			s.Length += consumequeue.UnitSize
			return
		}
	}
	p.steps = append(p.steps, Step{Op: Patch, File: u.File, Offset: u.Offset, Length: consumequeue.UnitSize, content: u.AppendTo(nil), Why: "made again"})
}

// sizeOf is the length of a file, 0 when it is not there.
func sizeOf(fsys mappedfile.FS, name string) (size int64, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Size()
}
