package crashfs

import (
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/mappedfile"
)

const (
	pageSize   = mappedfile.PageSize
	sectorSize = 512
	allNew     = 1<<(pageSize/sectorSize) - 1 // a page's sectors, all new
)

// Snapshot is what may be found on the disk if the power fails at the moment that it was taken.
type Snapshot struct {
	root    *node
	durable map[*node]map[string]*node // names of each directory
	pending []change
	files   []*fileState
	points  []point
	byNode  map[*node]*fileState
}

// fileState is one file: the durable bytes, and what else there is.
type fileState struct {
	name    string
	perm    fs.FileMode
	content []byte
	lengths []int64 // the durable one first, the newest last
	pages   []pageState
	first   int // where its points start: one for the length if there is a choice, one for each page
}

// pageState is a page whose new bytes are not durable.
type pageState struct {
	p      int64
	latest []byte
}

// point is one thing that may come out in several ways; options are in order from oldest to newest.
type point struct {
	label   string
	options []int // name change: 0, 1; length: its index; page: a bit for each new sector
	page    bool
}

// Snapshot freezes the present moment. Writes through mappings that are going on may be in it or not.
func (c *FS) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Snapshot{root: c.root, durable: map[*node]map[string]*node{}, byNode: map[*node]*fileState{}}
	for _, ch := range c.pending {
		s.pending = append(s.pending, change{slices.Clone(ch.parts)})
		s.points = append(s.points, point{label: ch.label(), options: []int{0, 1}})
	}
	s.add(c.root, ".")
	for _, ch := range s.pending {
		for _, p := range ch.parts {
			s.add(p.dir, p.name)
			if p.node != nil {
				s.add(p.node, p.name)
			}
		}
	}
	return s
}

func (ch *change) label() string {
	p := ch.parts[0]
	switch {
	case len(ch.parts) > 1:
		return "rename to " + p.name
	case p.node == nil:
		return "remove " + p.name
	}
	return "create " + p.name
}

// add takes up a node and all below it.
func (s *Snapshot) add(n *node, name string) {
	if n.isDir() {
		if _, ok := s.durable[n]; ok {
			return
		}
		s.durable[n] = maps.Clone(n.durable)
		for _, base := range slices.Sorted(maps.Keys(n.durable)) {
			s.add(n.durable[base], path.Join(name, base))
		}
		return
	}
	if _, ok := s.byNode[n]; ok {
		return
	}
	n.shared = true
	f := &fileState{name: name, perm: n.perm, content: n.content, lengths: append([]int64{n.length}, n.lengths...), first: len(s.points)}
	s.byNode[n] = f
	s.files = append(s.files, f)
	if len(f.lengths) > 1 {
		s.points = append(s.points, point{label: "length of " + name, options: upTo(len(f.lengths))})
	}
	if !n.touched {
		return
	}
	live, err := n.bytes()
	if err != nil {
		panic(fmt.Sprintf("crashfs: reading %s of the inner file layer: %v", name, err))
	}
	n.diff(live, func(p int64) {
		f.pages = append(f.pages, pageState{p: p, latest: livePage(live, p)})
		s.points = append(s.points, point{label: fmt.Sprintf("page %d of %s", p, name), page: true, options: []int{0, 0x0f, 0xf0, allNew}})
	})
}

func upTo(n int) []int {
	options := make([]int, n)
	for i := range options {
		options[i] = i
	}
	return options
}

// Image gives one state of the disk after a power cut now, as a file system of its own. The same seed at the same
// moment gives the same image. Seed 0: nothing that is not durable is there. Seed 1: everything is.
func (c *FS) Image(seed uint64) mappedfile.FS { return c.Snapshot().Image(seed) }

// Image is described at [FS.Image].
func (s *Snapshot) Image(seed uint64) mappedfile.FS {
	choice := s.oldest()
	switch seed {
	case 0:
	case 1:
		choice = s.newest()
	default:
		s.random(seed, choice)
	}
	return s.build(choice)
}

func (s *Snapshot) oldest() []int {
	choice := make([]int, len(s.points))
	for i, p := range s.points {
		choice[i] = p.options[0]
	}
	return choice
}

func (s *Snapshot) newest() []int {
	choice := make([]int, len(s.points))
	for i, p := range s.points {
		choice[i] = p.options[len(p.options)-1]
	}
	return choice
}

// random chooses for each point. Each image has likelihoods of its own, so that some are nearly old, some nearly new.
func (s *Snapshot) random(seed uint64, choice []int) {
	rng := rand.New(rand.NewPCG(seed, 0x726f636b6574))
	odds := []float64{0, 0.1, 0.5, 0.9, 1}
	newer := func() float64 { return odds[rng.IntN(len(odds))] }
	name, length, page, torn := newer(), newer(), newer(), []float64{0, 0, 0.3}[rng.IntN(3)]
	for i, p := range s.points {
		switch {
		case p.page && rng.Float64() < torn:
			choice[i] = rng.IntN(allNew + 1)
		case p.page && rng.Float64() < page:
			choice[i] = allNew
		case p.page:
			choice[i] = 0
		case len(p.options) == 2 && i < len(s.pending):
			if rng.Float64() < name {
				choice[i] = 1
			}
		case rng.Float64() < length:
			choice[i] = len(p.options) - 1
		default:
			choice[i] = rng.IntN(len(p.options))
		}
	}
}

// Image is one state of the disk, and in words what of it is new.
type Image struct {
	FS   mappedfile.FS
	Text string
}

// Images goes through at most limit states of the disk. If there are no more than that, it gives all of them, with torn
// pages torn in the middle; else the oldest and the newest, those that differ from one of these in one point, and then
// random ones.
func (c *FS) Images(limit int) iter.Seq[Image] { return c.Snapshot().Images(limit) }

// Images is described at [FS.Images].
func (s *Snapshot) Images(limit int) iter.Seq[Image] {
	return func(yield func(Image) bool) {
		for choice := range s.choices(limit) {
			if limit--; limit < 0 || !yield(Image{s.build(choice), s.describe(choice)}) {
				return
			}
		}
	}
}

// Count gives the number of states that Images would go through without a limit; it stops counting at most.
func (s *Snapshot) Count(most int) int {
	n := 1
	for _, p := range s.points {
		if n *= len(p.options); n >= most {
			return most
		}
	}
	return n
}

func (s *Snapshot) choices(limit int) iter.Seq[[]int] {
	if s.Count(limit+1) <= limit {
		return s.every
	}
	return func(yield func([]int) bool) {
		oldest, newest := s.oldest(), s.newest()
		if !yield(oldest) || !yield(newest) {
			return
		}
		for i := range s.points {
			for _, base := range [][]int{oldest, newest} {
				for _, o := range s.points[i].options {
					if o == base[i] {
						continue
					}
					choice := slices.Clone(base)
					choice[i] = o
					if !yield(choice) {
						return
					}
				}
			}
		}
		for seed := uint64(2); ; seed++ {
			choice := s.oldest()
			s.random(seed, choice)
			if !yield(choice) {
				return
			}
		}
	}
}

// every counts through all choices.
func (s *Snapshot) every(yield func([]int) bool) {
	digits := make([]int, len(s.points))
	for {
		choice := make([]int, len(digits))
		for i, d := range digits {
			choice[i] = s.points[i].options[d]
		}
		if !yield(choice) {
			return
		}
		i := 0
		for ; i < len(digits); i++ {
			if digits[i]++; digits[i] < len(s.points[i].options) {
				break
			}
			digits[i] = 0
		}
		if i == len(digits) {
			return
		}
	}
}

func (s *Snapshot) describe(choice []int) string {
	var text strings.Builder
	text.WriteString("new:")
	for i, p := range s.points {
		if choice[i] == p.options[0] {
			continue
		}
		text.WriteString(" " + p.label)
		if p.page && choice[i] != allNew {
			fmt.Fprintf(&text, " (sectors %08b)", choice[i])
		}
		text.WriteString(";")
	}
	return text.String()
}
