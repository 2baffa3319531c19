package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// RestoreConfig puts the .bak of each file under config in the place of the file, where that is missing or damaged and the
// .bak is good. When one is damaged and has no good .bak, the error matches [ErrNoBackup] and names it; the journal is then that
// of the others, nil when there are none.
func (r *Repair) RestoreConfig(ctx context.Context) (*Journal, error) {
	p := &plan{Repair: r}
	var lost []error
	for f, err := range r.dir.Check(ctx, inspect.CheckOptions{Max: -1}) {
		if err != nil {
			return nil, err
		}
		if f.Kind == inspect.BadFile && path.Dir(f.File) == configDir {
			lost = append(lost, r.noBackup(f))
		}
		if f.Kind != inspect.BackupInUse {
			continue
		}
		p.moveIf(f.File, f.Text)
		p.place(r.fsys, f.File+".bak", f.File, "the backup "+path.Base(f.File)+".bak is good")
	}
	if p.err != nil {
		return nil, p.err
	}
	j, err := r.run(ctx, "restore", "what was stored last before the damage is lost: look at the offsets of the groups", p.steps)
	if len(lost) > 0 && (err == nil || errors.Is(err, ErrNothing)) {
		return j, errors.Join(lost...)
	}
	return j, err
}

const configDir = "config"

// noBackup is the error for a damaged file without a good .bak; it says what can be done.
func (r *Repair) noBackup(f inspect.Finding) error {
	err := fmt.Errorf("%s: offset %d: %s: %w", f.File, f.Offset, f.Text, ErrNoBackup)
	bak := "there is no .bak"
	if strings.HasSuffix(f.File, ".bak") {
		bak = "it is the .bak itself"
	} else if there, readErr := exists(r.fsys, f.File+".bak"); readErr != nil || there {
		bak = "its .bak is not known to be good"
	}
	return fmt.Errorf("%w (%s): put a good copy of the file in its place, of a backup or another broker, or move it and its .bak out of the "+
		"directory, and what it said is lost", err, bak)
}

// place puts a copy of a file of another directory into the store.
func (p *plan) place(from mappedfile.FS, name, to, why string) {
	p.steps = append(p.steps, Step{
		Op: Place, File: to, Why: why,
		source: func() (mappedfile.File, error) { return from.OpenFile(name, os.O_RDONLY, 0) },
	})
}
