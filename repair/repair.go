package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

var (
	// ErrUnfinished says that a repair, or an undo, was ended by a crash: [Repair.Finish] or [Repair.Undo] comes first.
	ErrUnfinished = errors.New("an earlier repair is not finished: finish or undo it first")
	// ErrNothing says that there is nothing to repair, to finish or to undo.
	ErrNothing = errors.New("nothing to do")
	// ErrNoBackup says that a file under config is damaged and has no good .bak.
	ErrNoBackup = errors.New("damaged, and no good .bak to restore it from")
)

// Repair is a store directory that is being repaired. It holds the writer's lock. One goroutine may use it at a time.
type Repair struct {
	fsys mappedfile.FS
	dir  *inspect.Dir
	lock io.Closer
	// DryRun makes every repair decide its steps and change nothing.
	DryRun bool
	// Force has Undo take a repair back after which the store was changed. What was derived from the log must be made again then.
	Force bool
	dry   bool // opened so
}

var errDry = errors.New("opened for looking only")

// Open takes the lock of a store, so that no other writer has it open; it returns an error that matches
// [mappedfile.ErrLocked] when one has, and [inspect.ErrNoStore] when there is no store. RocketMQ 3.1 takes no lock: see [InUse].
func Open(fsys mappedfile.FS) (*Repair, error) {
	dir, err := inspect.Open(readFS{fsys})
	if err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(recovery.LockFile)
	if err != nil {
		return nil, err
	}
	return &Repair{fsys: fsys, dir: dir, lock: lock}, nil
}

// OpenDry is [Open] for looking: DryRun is set and stays, and no lock file is made where there is none. Finish and Undo are refused.
func OpenDry(fsys mappedfile.FS) (*Repair, error) {
	f, err := fsys.OpenFile(recovery.LockFile, os.O_RDONLY, 0)
	if err == nil {
		if err := f.Close(); err != nil {
			return nil, err
		}
		r, err := Open(fsys)
		if err == nil {
			r.DryRun, r.dry = true, true
		}
		return r, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	dir, err := inspect.Open(readFS{fsys})
	if err != nil {
		return nil, err
	}
	return &Repair{fsys: fsys, dir: dir, DryRun: true, dry: true}, nil
}

// Close gives the lock back.
func (r *Repair) Close() error {
	if r.lock == nil {
		return nil
	}
	err := r.lock.Close()
	r.lock = nil
	return err
}

// Journals gives the journals of all repairs of the store, the oldest first.
func (r *Repair) Journals() ([]*Journal, error) {
	all, _, err := journals(r.fsys)
	return all, err
}

// run does a repair of that kind. It returns ErrNothing without steps and ErrUnfinished.
func (r *Repair) run(ctx context.Context, kind, next string, steps []Step) (*Journal, error) {
	all, number, err := journals(r.fsys)
	if err != nil {
		return nil, err
	}
	for _, j := range all {
		if j.State == Begun || j.State == Undoing {
			return nil, fmt.Errorf("%s: %w", j.Dir(), ErrUnfinished)
		}
	}
	if len(steps) == 0 {
		return nil, ErrNothing
	}
	j := &Journal{Number: number, Kind: kind, Steps: steps, Next: next}
	if r.DryRun || r.dry {
		return j, nil
	}
	if err := j.begin(ctx, r.fsys); err != nil {
		return nil, err
	}
	return j, j.finish(r.fsys)
}

// Finish does what a crash left undone of the last repair, or of its undoing. It returns ErrNothing when all are whole.
func (r *Repair) Finish() (*Journal, error) {
	if r.dry {
		return nil, errDry
	}
	all, _, err := journals(r.fsys)
	if err != nil {
		return nil, err
	}
	for _, j := range all {
		switch j.State {
		case Begun:
			return j, j.finish(r.fsys)
		case Undoing:
			return j, j.undo(r.fsys)
		case Done, Undone:
		}
	}
	return nil, ErrNothing
}

// Undo takes the last repair back that was not undone yet, be it whole or not. It returns ErrNothing when there is none, and an error
// that matches [ErrOpened] when the store was changed since, unless Force is set.
func (r *Repair) Undo() (*Journal, error) {
	if r.dry {
		return nil, errDry
	}
	all, _, err := journals(r.fsys)
	if err != nil {
		return nil, err
	}
	for _, j := range slices.Backward(all) {
		if j.State == Undone {
			continue
		}
		if err := j.unopened(r.fsys); errors.Is(err, ErrOpened) && r.Force {
			if err := j.clearWay(r.fsys); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, err
		}
		return j, j.undo(r.fsys)
	}
	return nil, ErrNothing
}
