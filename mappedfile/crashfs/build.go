package crashfs

import (
	"maps"
	"path"

	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// build makes the file system that a choice describes.
func (s *Snapshot) build(choice []int) *memfs.FS {
	names := make(map[*node]map[string]*node, len(s.durable))
	maps.Copy(names, s.durable)
	cloned := map[*node]bool{}
	for i, ch := range s.pending {
		if choice[i] == 0 {
			continue
		}
		for _, p := range ch.parts {
			if !cloned[p.dir] {
				names[p.dir] = maps.Clone(names[p.dir])
				cloned[p.dir] = true
			}
			p.apply(names[p.dir])
		}
	}
	m := memfs.New()
	s.buildDir(m, s.root, ".", names, choice)
	return m
}

func (s *Snapshot) buildDir(m *memfs.FS, n *node, name string, names map[*node]map[string]*node, choice []int) {
	must(m.MkdirAll(name, n.perm))
	for base, sub := range names[n] {
		if sub.isDir() {
			s.buildDir(m, sub, path.Join(name, base), names, choice)
			continue
		}
		f := s.byNode[sub]
		must(m.WriteFile(path.Join(name, base), f.build(choice)))
	}
}

// build gives the file's bytes.
func (f *fileState) build(choice []int) []byte {
	at, length := f.first, f.lengths[0]
	if len(f.lengths) > 1 {
		length = f.lengths[choice[at]]
		at++
	}
	b := make([]byte, length)
	copy(b, f.content)
	for i, page := range f.pages {
		sectors := choice[at+i]
		for s := range pageSize / sectorSize {
			if sectors&(1<<s) == 0 {
				continue
			}
			from := min(page.p*pageSize+int64(s)*sectorSize, length)
			to := min(from+sectorSize, length)
			clear(b[from:to])
			copy(b[from:to], page.latest[min(s*sectorSize, len(page.latest)):])
		}
	}
	return b
}

func must(err error) {
	if err != nil {
		panic("crashfs: building an image: " + err.Error())
	}
}
