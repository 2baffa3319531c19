package repair

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

const nextOpen = "open the store for writing (storectl recover), which makes good for what was taken away, then check it again"

// Cut ends the commit log at a physical offset, where a record begins or ends; below 0: where its first damage begins. What
// the log has from there on is moved aside, and all that points there with it: queue units, redo units, index files, the
// state table of 3.1, the checkpoint. The next opening then looks at the whole log.
func (r *Repair) Cut(ctx context.Context, at int64) (*Journal, error) {
	segs, size, err := r.dir.Segments(func(inspect.Finding) {})
	if err != nil {
		return nil, err
	}
	if at < 0 {
		if at, err = r.firstDamage(ctx); err != nil {
			return nil, err
		}
	} else if err := r.border(ctx, segs, at); err != nil {
		return nil, err
	}
	p := &plan{Repair: r}
	p.cutLog(segs, size, at)
	for _, part := range []func(context.Context, int64) error{p.cutQueues, p.cutRedo, p.cutIndex, p.cutStates} {
		if err := part(ctx, at); err != nil {
			return nil, err
		}
	}
	p.moveIf(recovery.CheckpointFile, "recovery then reads the whole log")
	p.unclean()
	if p.err != nil {
		return nil, p.err
	}
	return r.run(ctx, "cut", nextOpen, p.steps)
}

// firstDamage is where the first bytes of the log are that cannot be believed.
func (r *Repair) firstDamage(ctx context.Context) (int64, error) {
	damage, err := r.damage(ctx)
	if err != nil {
		return 0, err
	}
	if len(damage) == 0 {
		return 0, fmt.Errorf("the commit log is whole: %w", ErrNothing)
	}
	return damage[0].From, nil
}

// damage gives the stretches of the log that a check calls errors, in order.
func (r *Repair) damage(ctx context.Context) ([]inspect.Finding, error) {
	var found []inspect.Finding
	for f, err := range r.dir.Check(ctx, inspect.CheckOptions{Max: -1}) {
		if err != nil {
			return nil, err
		}
		if path.Dir(f.File) != recovery.CommitLogDir || f.Severity != inspect.Error {
			continue
		}
		switch f.Kind {
		case inspect.BadMagic, inspect.BadSize, inspect.BadPlace, inspect.BadCRC, inspect.Zeros:
			found = append(found, f)
		}
	}
	return found, nil
}

// border says whether a record begins or ends at a physical offset.
func (r *Repair) border(ctx context.Context, segs []inspect.Segment, at int64) error {
	from := at
	for _, s := range segs {
		if s.Start <= at && at <= s.End() {
			from = min(from, s.Start)
		}
	}
	for rec, err := range r.dir.Log(ctx, inspect.LogRange{From: from, To: at + 1}, func(inspect.Finding) {}) {
		if err != nil {
			return err
		}
		if rec.PhysicalOffset == at || rec.PhysicalOffset+int64(rec.Size) == at {
			return nil
		}
	}
	return fmt.Errorf("no record begins or ends at %d", at)
}

// plan collects the steps of a repair. The first error is kept.
type plan struct {
	*Repair
	steps []Step
	err   error
}

// cutLog ends the log.
func (p *plan) cutLog(segs []inspect.Segment, size, at int64) {
	for i, s := range segs {
		switch {
		case s.Start >= at && i > 0:
			p.steps = append(p.steps, Step{Op: Move, File: s.File, Why: "it lies behind the new end of the log"})
		case s.End() > at:
			from := max(at-s.Start, 0)
			p.zero(s.File, from, s.Length, "behind the new end of the log")
			if s.Length < size {
				p.steps = append(p.steps, Step{Op: Resize, File: s.File, Size: s.Length, NewSize: size, Why: "as long as the others"})
			}
		}
	}
}

// zero has zeros written from one offset of a file up to another, as far as other bytes are there.
func (p *plan) zero(file string, from, to int64, why string) {
	end, err := lastByte(p.fsys, file, from, to)
	if err != nil && p.err == nil {
		p.err = err
	}
	if end > from {
		p.steps = append(p.steps, Step{Op: Patch, File: file, Offset: from, Length: end - from, Why: why})
	}
}

// lastByte is behind the last byte of a stretch that is not zero; its start when all are.
func lastByte(fsys mappedfile.FS, file string, from, to int64) (int64, error) {
	f, err := fsys.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		return from, err
	}
	defer func() { _ = f.Close() }() // it was only read
	b := make([]byte, min(chunk, max(to-from, 0)))
	for to > from {
		part := b[:min(int64(len(b)), to-from)]
		if n, err := f.ReadAt(part, to-int64(len(part))); n < len(part) {
			return from, fmt.Errorf("%s: %w", file, err)
		}
		for i, c := range slices.Backward(part) {
			if c != 0 {
				return to - int64(len(part)) + int64(i) + 1, nil
			}
		}
		to -= int64(len(part))
	}
	return from, nil
}

// moveIf moves a file aside if there is one.
func (p *plan) moveIf(file, why string) {
	there, err := exists(p.fsys, file)
	if err != nil && p.err == nil {
		p.err = err
	}
	if there {
		p.steps = append(p.steps, Step{Op: Move, File: file, Why: why})
	}
}

// unclean makes the file that tells the next opening to look at everything.
func (p *plan) unclean() {
	there, err := exists(p.fsys, recovery.AbortFile)
	if err != nil && p.err == nil {
		p.err = err
	}
	if !there {
		p.steps = append(p.steps, Step{Op: Place, File: recovery.AbortFile, content: []byte{}, Why: "the next opening looks at the whole store"})
	}
}

// cutIndex moves the index files aside that know of records from a physical offset on.
func (p *plan) cutIndex(ctx context.Context, at int64) error {
	for x, err := range p.dir.IndexFiles(ctx, func(inspect.Finding) {}) {
		if err != nil {
			return err
		}
		if x.EndOffset >= at || x.BeginOffset >= at {
			p.steps = append(p.steps, Step{Op: Move, File: x.File, Why: fmt.Sprintf("it knows of records up to %d", x.EndOffset)})
		}
	}
	return ctx.Err()
}

// cutStates moves the state table of 3.1 aside: the engine makes it again, each record under its number.
func (p *plan) cutStates(ctx context.Context, at int64) error {
	all, keep := []string{}, true
	for s, err := range p.dir.StateTable(ctx, func(inspect.Finding) {}) {
		if err != nil {
			return err
		}
		if len(all) == 0 || all[len(all)-1] != s.File {
			all = append(all, s.File)
		}
		keep = keep && s.CommitOffset < at
	}
	// The end of a transaction may be what is cut, so a table is only right as long as the log had nothing of it there.
	last := int64(0)
	for u, err := range p.dir.RedoLog(ctx, func(inspect.Finding) {}) {
		if err != nil {
			return err
		}
		last = max(last, u.PhysicalOffset)
	}
	if keep && last < at {
		return nil
	}
	for _, file := range all {
		p.steps = append(p.steps, Step{Op: Move, File: file, Why: "it is made again from redo log and log"})
	}
	return nil
}
