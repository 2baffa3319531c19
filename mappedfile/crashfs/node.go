package crashfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// node is a file or a directory, however it is called.
type node struct {
	perm fs.FileMode

	live, durable map[string]*node // of a directory; nil for a file

	inner    mappedfile.File // of a file: to read what it holds now
	mappings []*mapping
	content  []byte // what is durable of the bytes; those behind it are zero. It may be longer than length
	shared   bool   // a snapshot has content too
	touched  bool   // it may hold something that is not durable
	length   int64  // durable length
	lengths  []int64
	// lost holds the pages that a failed sync was to write, as they were then.
	lost map[int64][]byte
}

// change is one step in the name space that is not durable: a part for each name that it changes.
type change struct {
	parts []part // additions before removals
}

// part says what name shows after the change; nil: nothing.
type part struct {
	dir  *node
	name string
	node *node
}

func newDir(perm fs.FileMode) *node {
	return &node{perm: perm.Perm(), live: map[string]*node{}, durable: map[string]*node{}}
}

func (n *node) isDir() bool { return n.live != nil }

// change applies parts to the live names and remembers them until they are durable.
func (c *FS) change(parts ...part) {
	for _, p := range parts {
		p.apply(p.dir.live)
	}
	c.pending = append(c.pending, &change{parts})
}

func (p part) apply(names map[string]*node) {
	if p.node == nil {
		delete(names, p.name)
		return
	}
	names[p.name] = p.node
}

// syncDir makes the names in n durable. A file that was renamed out of it is then durable under its new name.
func (c *FS) syncDir(n *node) {
	for _, ch := range c.pending {
		leaves := slices.ContainsFunc(ch.parts, func(p part) bool { return p.dir == n && p.node == nil })
		ch.parts = slices.DeleteFunc(ch.parts, func(p part) bool {
			if p.dir != n && leaves {
				p.apply(p.dir.durable)
			}
			return p.dir == n || leaves
		})
	}
	n.durable = maps.Clone(n.live)
	c.pending = slices.DeleteFunc(c.pending, func(ch *change) bool { return len(ch.parts) == 0 })
}

// size is the length now.
func (n *node) size() (int64, error) { return n.inner.Size() }

// bytes gives what the file holds now: a mapping of all of it, or a copy.
func (n *node) bytes() ([]byte, error) {
	size, err := n.size()
	if err != nil {
		return nil, err
	}
	var mapped []byte
	for _, m := range n.mappings {
		if b := m.Bytes(); len(b) > len(mapped) {
			mapped = b
		}
	}
	if int64(len(mapped)) == size {
		return mapped, nil
	}
	b := make([]byte, size)
	liveCopy(b, mapped)
	got, err := n.inner.ReadAt(b[len(mapped):], int64(len(mapped)))
	if errors.Is(err, io.EOF) || got == len(b)-len(mapped) {
		err = nil
	}
	return b, err
}

// resized notes a change of the file, and of its length if that is another now.
func (n *node) resized() error {
	n.touched = true
	size, err := n.size()
	if err != nil {
		return err
	}
	if last := len(n.lengths) - 1; last < 0 && size == n.length || last >= 0 && n.lengths[last] == size {
		return nil
	}
	n.lengths = append(n.lengths, size)
	return nil
}

// sync makes everything durable.
func (n *node) sync() error {
	b, err := n.bytes()
	if err != nil {
		return err
	}
	if len(b) < len(n.content) {
		n.content, n.shared = n.content[:len(b):len(b)], true // shared in effect: the capacity is not ours to write
	}
	n.syncRange(b, 0, int64(len(b)))
	n.length, n.lengths = int64(len(b)), nil
	n.touched = len(n.mappings) > 0 || len(n.lost) > 0
	return nil
}

func (n *node) syncTree() error {
	if !n.isDir() {
		return n.sync()
	}
	for _, sub := range n.live {
		if err := sub.syncTree(); err != nil {
			return err
		}
	}
	return nil
}

// writeback makes those dirty pages durable that choose says.
func (n *node) writeback(choose func() bool) error {
	if n.isDir() {
		for _, base := range slices.Sorted(maps.Keys(n.live)) {
			if err := n.live[base].writeback(choose); err != nil {
				return err
			}
		}
		return nil
	}
	if !n.touched {
		return nil
	}
	b, err := n.bytes()
	if err != nil {
		return err
	}
	var dirty []int64
	n.diff(b, func(p int64) {
		if p*pageSize < int64(len(b)) && choose() {
			dirty = append(dirty, p)
		}
	})
	for _, p := range dirty {
		n.syncRange(b, p*pageSize, min((p+1)*pageSize, int64(len(b))))
	}
	return nil
}

// syncRange makes the bytes [from, to) of live durable, but for pages that a failed sync has lost.
func (n *node) syncRange(live []byte, from, to int64) {
	n.own(to)
	if len(n.lost) == 0 {
		liveCopy(n.content[from:to], live[from:to])
		return
	}
	for from < to {
		p := from / pageSize
		end := min((p+1)*pageSize, to)
		if was, ok := n.lost[p]; !ok || !liveEqual(was, pageOf(live, p)) {
			delete(n.lost, p)
			liveCopy(n.content[from:end], live[from:end])
		}
		from = end
	}
}

// own makes content at least size long and nobody else's.
func (n *node) own(size int64) {
	switch {
	case int64(len(n.content)) < size:
		b := make([]byte, size)
		copy(b, n.content)
		n.content, n.shared = b, false
	case n.shared:
		n.content, n.shared = slices.Clone(n.content), false
	}
}

// lose notes that a sync of [from, to) failed.
func (n *node) lose(from, to int64) error {
	b, err := n.bytes()
	if err != nil {
		return err
	}
	n.diff(b, func(p int64) {
		if p*pageSize < to && (p+1)*pageSize > from {
			if n.lost == nil {
				n.lost = map[int64][]byte{}
			}
			n.lost[p] = livePage(b, p)
		}
	})
	return nil
}

// diff calls f for each page in which live and durable bytes differ.
func (n *node) diff(live []byte, f func(p int64)) {
	for p := int64(0); p*pageSize < max(int64(len(live)), int64(len(n.content))); p++ {
		if !samePage(pageOf(live, p), pageOf(n.content, p)) {
			f(p)
		}
	}
}

// samePage compares two pages, the shorter one taken as followed by zeros.
func samePage(live, durable []byte) bool {
	short := min(len(live), len(durable))
	return liveEqual(live[:short], durable[:short]) && liveZero(live[short:]) && liveZero(durable[short:])
}

// pageOf gives page p of b, which may be cut short by the end of b.
func pageOf(b []byte, p int64) []byte {
	size := int64(len(b))
	return b[min(p*pageSize, size):min((p+1)*pageSize, size)]
}

// livePage copies page p of live bytes.
func livePage(b []byte, p int64) []byte {
	b = pageOf(b, p)
	page := make([]byte, len(b))
	liveCopy(page, b)
	return page
}
