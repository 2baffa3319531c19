package recovery

import (
	"fmt"

	"github.com/rocketstore/rocketstore/mappedfile"
)

const (
	// sectorSize is the least that a disk writes as a whole.
	sectorSize = 512
	// leastUnwritten is how many zeros at the end of a sector show that it was not written: no record has so many in a row
	// but in its body.
	leastUnwritten = 16
)

// unsure says whether a power cut may have taken what lies at the end of the walk: the stop was not clean, the system was
// started anew since, and our own last checkpoint knew nothing there to be durable.
func (p *planner) unsure() bool {
	return p.Unclean && p.Hint != nil && !p.Hint.SameBoot && p.w.end >= p.Hint.Dispatched
}

// leftByPowerCut says whether damage with good records behind it is what a power cut leaves of pages on their way to the
// disk, which arrive in any order: [planner.unsure], and a sector in it was never written. Then the log ends there as with
// any torn tail. Everything else is damage to what was stored.
func (p *planner) leftByPowerCut() (bool, error) {
	if !p.unsure() {
		return false, nil
	}
	size := p.Log.SegmentSize()
	start := p.w.end - p.w.end%size
	v, err := p.Log.Queue().ViewSegment(start)
	if err != nil {
		return false, err
	}
	defer v.Release()
	found := false
	err = mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()
		from := p.w.end - start
		to := min(p.w.beyond.First-start, int64(len(b)))
		found = hasUnwrittenSector(b[from:to], from)
		return nil
	})
	return found, err
}

// hasUnwrittenSector looks for a sector that ends within b with zeros; at is where b lies in its file.
func hasUnwrittenSector(b []byte, at int64) bool {
	for end := sectorSize - at%sectorSize; end <= int64(len(b)); end += sectorSize {
		piece := b[max(0, end-sectorSize):end]
		if len(piece)-notZero(piece) >= leastUnwritten {
			return true
		}
	}
	return false
}

// cutAsTail ends the log before pages that a power cut has lost, and has what lies behind kept aside.
func (p *planner) cutAsTail(c *mappedfile.CorruptError) {
	b := p.w.beyond
	p.d.keep = b
	p.d.warn(Warning{
		Kind: KindLostPages, File: c.File, Offset: c.Offset, From: p.w.end, To: b.End,
		Text: fmt.Sprintf("the log ends here: %v; the power cut came before it was on the disk. %d records of %d bytes behind it, at %d to %d, "+
			"were not known to be durable either; they are cut and kept in lost+found", c.Err, b.Records, b.Bytes, b.First, b.Last),
	})
}
