package inspect

import (
	"io/fs"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// findLine says which line wrote the directory, from a sample of what it holds and from the note that this module's own
// store leaves in it. Opening for writing weighs the two alike.
func (d *Dir) findLine() (*recovery.Identity, error) {
	id, err := recovery.Identify(d.mapped())
	if err != nil { // an index file or checkpoint that is none must not hide what all the rest shows
		if id, err = recovery.Identify(withoutSome{d.mapped()}); err != nil {
			return nil, err
		}
	}
	note, err := config.LoadMarker[mappedfile.File](d.mapped())
	if err != nil {
		return id, nil //nolint:nilerr // what cannot be read of the note is as if there were none
	}
	if _, err := dialect.Parse(note.Dialect); err != nil {
		return id, nil //nolint:nilerr // it says nothing that is known
	}
	v49, v53 := dialect.V49().Name, dialect.V53().Name
	if !id.Certain || note.Dialect == v53 && id.Line == v49 || id.Line == dialect.V31().Name && note.TransactionEngine != "" {
		id.Line, id.Why = note.Dialect, "the note "+config.MarkerFile+" says so"
	}
	return id, nil
}

// lineAnyway is the line by what can be read, with the error of what cannot.
func (d *Dir) lineAnyway() (*recovery.Identity, error) {
	id, err := d.lineOf()
	if err == nil {
		return id, nil
	}
	id, again := recovery.Identify(patientFS{d.mapped()})
	if again != nil {
		id = &recovery.Identity{Line: dialect.V49().Name} // as when nothing tells otherwise
	}
	return id, err
}

// withoutSome is a directory as if it had no index and no checkpoint.
type withoutSome struct{ mappedfile.FS }

// ReadDir lists a directory.
func (w withoutSome) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == recovery.IndexDir {
		return nil, fs.ErrNotExist
	}
	return w.FS.ReadDir(name)
}

// OpenFile opens a file.
func (w withoutSome) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	if name == recovery.CheckpointFile {
		return nil, fs.ErrNotExist
	}
	return w.FS.OpenFile(name, flag, perm)
}

// lineName is what a dialect's line is called.
func lineName(name string) string {
	switch name {
	case dialect.V49().Name:
		return "4.x"
	case dialect.V53().Name:
		return "5.x"
	}
	return name
}
