package recovery

import (
	"slices"

	"github.com/rocketstore/rocketstore/index"
)

// indexNeeds gives the place from which records must go into the index again, -1 for none. The walk began at start.
func (p *planner) indexNeeds(start int64) (int64, string) {
	if p.Index == nil {
		return -1, ""
	}
	files := p.indexFiles()
	keep := p.indexKeeps(files)
	switch {
	case keep < len(files):
		from := p.d.LogStart // not where the first file begins: the record before, without keys, has given it its name
		if keep > 0 {
			from = files[keep-1].Header.EndOffset
		}
		for _, f := range files[keep:] {
			if f.Damaged != nil || !p.indexFits(f.Header) {
				from = p.d.LogStart // what its header says may be anything
				break
			}
			from = min(from, f.Header.BeginOffset)
		}
		return max(from, p.d.LogStart), "begin of the index files that are made again"
	case keep > 0:
		last := files[keep-1].Header
		// Behind a full file there was another one, if there were more keys; some before the walk it has not seen. And between
		// the keys of one record a file may have become full.
		full := last.IndexCount >= files[keep-1].Entries
		if last.EndOffset < p.w.lastKeyed || full && (last.EndOffset < start || p.Unclean && last.EndOffset == p.w.lastKeyed) {
			return last.EndOffset, "last record that the index holds"
		}
	case p.w.last >= 0:
		return p.d.LogStart, "there is no index"
	}
	return -1, ""
}

// indexKeeps is how many index files stay, the oldest ones: after an unclean stop those that the checkpoint proves to be
// whole, and never one that knows records behind the end of the log.
func (p *planner) indexKeeps(files []index.FileInfo) int {
	keep := len(files)
	if p.Unclean && p.proof == nil {
		keep = index.Synced(files, p.Checkpoint.Index)
	}
	for i, f := range files[:keep] {
		if f.Damaged != nil || f.Header.EndOffset >= p.indexCut() || i > 0 && f.Header.BeginOffset < files[i-1].Header.EndOffset || !p.indexFits(f.Header) {
			return i
		}
	}
	return keep
}

// proveIndex looks, after an unclean stop, whether there is the file of which our note says how much was durable, and whether it
// is as the note says: then only what came later is put into it again. Those before it were full, and durable as well.
func (p *planner) proveIndex() (err error) {
	if p.Index == nil || !p.Unclean || p.Hint == nil || p.Hint.Index == nil {
		return nil
	}
	for _, f := range p.Index.Files() {
		if f.Name == p.Hint.Index.File {
			p.proof, err = p.Index.Prove(p.Hint.Index)
			return err
		}
		if f.Damaged != nil || f.Header.IndexCount < f.Entries {
			return nil
		}
	}
	return nil
}

// indexFiles are the index files, up to the one that is taken up where our note says, which ends there.
func (p *planner) indexFiles() []index.FileInfo {
	files := p.Index.Files()
	if p.proof == nil {
		return files
	}
	i := slices.IndexFunc(files, func(f index.FileInfo) bool { return f.Name == p.proof.File })
	files[i].Header = p.proof.Header
	return files[:i+1]
}

// indexFits says whether the first and the last record that an index file holds are where its header says, as far as the log
// goes: else it is another store's, or its header is damaged.
func (p *planner) indexFits(h index.Header) bool {
	if fits, ok := p.fits[h]; ok {
		return fits
	}
	at := func(offset, storeTime int64) bool {
		if h.Keys() == 0 || offset < p.d.LogStart || offset >= p.w.end || p.inGap(offset) {
			return true
		}
		r, err := p.Log.Peek(offset)
		return err == nil && r.StoreTimestamp == storeTime
	}
	p.fits[h] = at(h.BeginOffset, h.BeginTimestamp) && at(h.EndOffset, h.EndTimestamp)
	return p.fits[h]
}

// inGap says whether a physical offset lies between two segments.
func (p *planner) inGap(offset int64) bool {
	return slices.ContainsFunc(p.gaps(), func(g Gap) bool { return g.From <= offset && offset < g.To })
}

// leastLook is how many bytes of the log are read for missing index files whatever VerifyBytes says.
const leastLook = 64 << 20

// lookBetweenIndexFiles finds the first record with keys before start, where the walk begins, that lies between two index
// files, or before the first one: files are missing there. As a rule no record lies between two files, and but few without keys
// before the first; it looks at VerifyBytes of the log at the most, or at leastLook if that is more.
func (p *planner) lookBetweenIndexFiles(start int64) {
	if p.Index == nil || p.unindexed >= 0 {
		return
	}
	from, budget := p.d.LogStart, max(p.opts.VerifyBytes, leastLook)
	for _, f := range p.indexFiles() {
		if f.Damaged != nil || f.Header.Keys() == 0 {
			return // it will be dropped
		}
		to := min(f.Header.BeginOffset, start)
		if p.unindexed = p.firstKeyed(from, min(to, from+budget)); p.unindexed >= 0 {
			return
		}
		budget = max(0, budget-max(0, to-from))
		if from = f.Header.EndOffset; from < p.d.LogStart {
			from = p.d.LogStart
		} else if r, v, err := p.Log.Read(from); err == nil {
			from += int64(r.Size)
			v.Release()
		}
	}
}

// firstKeyed gives the first record with keys that begins in a range of the log, which begins with a record; -1 for none.
func (p *planner) firstKeyed(from, to int64) int64 {
	r := p.Log.NewReader(from)
	r.TrustCRC = true
	defer r.Close()
	for r.Offset() < to {
		rec, err := r.Next()
		if err != nil || rec == nil || rec.PhysicalOffset >= to {
			break
		}
		if unique, keys := p.Derive.Keys(rec); len(unique)+len(keys) > 0 {
			return rec.PhysicalOffset
		}
	}
	return -1
}

// indexCut is the physical offset from which on the index is not to be kept: the end of the log, damage that is passed over,
// or the first record with keys between two files, where an earlier loss of the original left it, or a file is missing.
func (p *planner) indexCut() int64 {
	end := p.w.end
	for _, h := range p.w.holes {
		end = min(end, h.from)
	}
	for _, unindexed := range []int64{p.w.unindexed, p.unindexed} {
		if unindexed >= 0 {
			end = min(end, unindexed)
		}
	}
	return end
}

// planIndex notes from where on the index is made again.
func (p *planner) planIndex() {
	p.d.indexFrom = p.d.LogEnd
	if p.Index != nil {
		files := p.indexFiles()
		p.d.indexKeep = p.indexKeeps(files)
		if p.proof != nil && p.d.indexKeep == len(files) {
			p.d.indexProof = p.proof
		}
	}
	from, why := p.indexNeeds(p.d.Start)
	if from < 0 {
		return
	}
	p.d.indexFrom = max(from, p.d.LogStart)
	if !p.Unclean && p.w.lastKeyed >= 0 {
		p.d.warn(Warning{Kind: KindIndexRebuilt, File: IndexDir, From: p.d.indexFrom, To: p.d.LogEnd, Text: "index made again from the log: " + why})
	}
}
