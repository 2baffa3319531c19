package repair

import (
	"context"
	"os"
	"path"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// RestoreConfig puts the .bak of each file under config in the place of the file, where that is missing or damaged and the
// .bak is good.
func (r *Repair) RestoreConfig(ctx context.Context) (*Journal, error) {
	p := &plan{Repair: r}
	for f, err := range r.dir.Check(ctx, inspect.CheckOptions{Max: -1}) {
		if err != nil {
			return nil, err
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
	return r.run(ctx, "restore", "what was stored last before the damage is lost: look at the offsets of the groups", p.steps)
}

// place puts a copy of a file of another directory into the store.
func (p *plan) place(from mappedfile.FS, name, to, why string) {
	p.steps = append(p.steps, Step{
		Op: Place, File: to, Why: why,
		source: func() (mappedfile.File, error) { return from.OpenFile(name, os.O_RDONLY, 0) },
	})
}
