package inspect

import "io/fs"

// foreignLinks are the links in the root whose names no line of RocketMQ has: they may lead anywhere, to the whole disk.
func (s *snapshotter) foreignLinks() (map[string]bool, error) {
	names, err := fs.ReadDir(s.dir.fsys, ".")
	links, known := make(map[string]bool), rootNames()
	for _, n := range names {
		if _, ok := known[n.Name()]; n.Type() == fs.ModeSymlink && !ok {
			links[n.Name()] = true
		}
	}
	return links, err
}
