package inspect

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/recovery"
)

// followed reports a symbolic link that opening the store for writing does not follow: any below the folders of the
// structures, and elsewhere those that lead out of the store. RocketMQ follows them all, and so does whoever only looks.
func (c *checker) followed(name string) {
	if c.linked[name] || len(c.linked) >= maxFindings {
		return
	}
	top, _, below := strings.Cut(name, "/")
	inStructure := slices.Contains([]string{commitLogDir, queueDir, extDir, batchQueueDir, indexDir, transactionDir}, top)
	f := Finding{Kind: Linked, Severity: Warning, File: name}
	switch {
	case inStructure && below:
		f.Text = "is a symbolic link: opening for writing refuses it, or passes over it"
	case (inStructure || slices.Contains([]string{configDir, recovery.CheckpointFile, recovery.AbortFile, recovery.LockFile}, top)) && c.dir.leaves(name):
		f.Text = "is a symbolic link that leads out of the store, which opening for writing does not follow"
	default:
		return
	}
	c.linked[name] = true
	c.report(f)
}

// maxLinks bounds how many links lead from one to the next, as in the kernel.
const maxLinks = 40

// leaves says whether a symbolic link leads out of the store. One that cannot be read does not.
func (d *Dir) leaves(name string) bool {
	for range maxLinks {
		target, err := fs.ReadLink(d.fsys, name)
		if err != nil {
			return false
		}
		if filepath.IsAbs(target) {
			return true
		}
		if name = path.Join(path.Dir(name), filepath.ToSlash(target)); !fs.ValidPath(name) {
			return true
		}
	}
	return false
}
