package inspect

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Segment is one file of a run of files that are named by the byte offset at which they start.
type Segment struct {
	File   string // path inside the store directory
	Start  int64  // what the name says
	Length int64  // bytes, as the file is
}

// End is the address behind the segment's last byte.
func (s Segment) End() int64 { return s.Start + s.Length }

// segmentsIn lists the segments of one folder in order; the other names in it are findings.
func (d *Dir) segmentsIn(dir string, report func(Finding)) ([]Segment, error) {
	entries, err := d.list(dir)
	if err != nil {
		return nil, err
	}
	var segs []Segment
	for _, e := range entries {
		name := path.Join(dir, e.name)
		start, ok := mappedfile.ParseSegmentName(e.name)
		switch {
		case !ok:
			report(foreign(name, "a name of 20 digits is expected here"))
		case !e.info.Mode().IsRegular():
			report(foreign(name, notRegular(e.info)))
		default:
			segs = append(segs, Segment{File: name, Start: start, Length: e.info.Size()})
		}
	}
	slices.SortFunc(segs, func(a, b Segment) int { return cmp.Compare(a.Start, b.Start) })
	return segs, nil
}

func foreign(name, text string) Finding {
	return Finding{Kind: ForeignFile, Severity: Warning, File: name, Text: text}
}

// maxCandidates bounds how many lengths inferSize weighs against all files.
const maxCandidates = 16

// inferSize gives the file size that a run of segments was most likely made with, 0 when no file has a length: the
// length of some file that goes with most names (a name is a multiple of the size), then the most frequent one, then
// the greatest, since a file may be too short but hardly too long.
func inferSize(segs []Segment) int64 {
	count := make(map[int64]int)
	for _, s := range segs {
		if s.Length > 0 {
			count[s.Length]++
		}
	}
	lengths := make([]int64, 0, len(count))
	for l := range count {
		lengths = append(lengths, l)
	}
	slices.SortFunc(lengths, func(a, b int64) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(b, a))
	})
	var best, fits int64
	for _, l := range lengths[:min(len(lengths), maxCandidates)] {
		n := int64(0)
		for _, s := range segs {
			if s.Start%l == 0 {
				n++
			}
		}
		if n > fits || n == fits && (count[l] > count[best] || count[l] == count[best] && l > best) {
			best, fits = l, n
		}
	}
	return best
}

// checkRun reports what is wrong with the names and lengths of one run of files. Size is what they should have; unused
// says whether nothing was written to a file, so that a short one in front of it counts as the last.
func checkRun(segs []Segment, size int64, unused func(Segment) bool, report func(Finding)) {
	last := len(segs) - 1
	if last > 0 && slices.ContainsFunc(segs[:last], func(s Segment) bool { return s.Length < size }) {
		for last > 0 && segs[last].Length > 0 && unused(segs[last]) {
			last--
		}
	}
	for i, s := range segs {
		checkLength(s, size, i >= last, report)
		if i == 0 {
			continue
		}
		before := segs[i-1]
		switch end := max(before.Start+size, before.End()); {
		case s.Start > end:
			report(Finding{
				Kind: Gap, Severity: Warning, File: s.File, From: end, To: s.Start,
				Text: fmt.Sprintf("%d bytes are missing between %s and %s", s.Start-end, before.File, s.File),
			})
		case s.Start < before.End():
			report(Finding{
				Kind: Overlap, Severity: Error, File: s.File, From: s.Start, To: before.End(),
				Text: fmt.Sprintf("%s reaches to %d", before.File, before.End()),
			})
		}
	}
}

func checkLength(s Segment, size int64, last bool, report func(Finding)) {
	f := Finding{Severity: Error, File: s.File}
	switch {
	case size > 0 && s.Start%size != 0:
		f.Kind, f.Text = WrongSize, fmt.Sprintf("the name %d is no multiple of the file size %d", s.Start, size)
	case s.Length == size:
		return
	case last && s.Length == 0:
		f.Kind, f.Severity, f.Text = EmptySegment, Warning, fmt.Sprintf("no bytes, %d expected", size)
	case last && s.Length < size:
		f.Kind, f.Severity, f.Offset = ShortSegment, Warning, s.Length
		f.Text = fmt.Sprintf("%d bytes, %d expected", s.Length, size)
	default:
		f.Kind, f.Text = WrongSize, fmt.Sprintf("%d bytes, %d expected", s.Length, size)
	}
	report(f)
}
