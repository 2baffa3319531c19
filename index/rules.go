package index

import (
	"math"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/message"
)

// Indexed says whether the keys of a record with these flags are indexed: none and prepared always, commit by dialect,
// rollback never (R-E-056). [Index.Put] wants the other records too, without their keys.
func Indexed(d *dialect.Dialect, flags message.SysFlag) bool {
	switch flags.Transaction() {
	case message.FlagCommit:
		return d.IndexesCommits
	case message.FlagRollback:
		return false
	}
	return true
}

// rules are what a line of RocketMQ does with one entry.
type rules struct {
	signedHash   bool // the hash is stored with its sign
	countsAll    bool // the slot count grows with each entry
	uniqueKey    bool // UNIQ_KEY is indexed, before KEYS
	clampsMillis bool // a time difference is bounded as milliseconds, before the division; else as seconds, after it
	countsEmpty  bool // a stop writes the index count 1 into a file without entries
}

// rulesOf reads the rules off a dialect.
func rulesOf(d *dialect.Dialect) rules {
	return rules{
		signedHash: d.KeepsSignedKeyHash, countsAll: d.CountsEveryIndexEntry, uniqueKey: d.IndexesUniqueKey,
		clampsMillis: d.ClampsIndexMillis, countsEmpty: d.CountsEmptyIndex,
	}
}

// stored is the hash as an entry holds it; Slot is the same for both forms.
func (r rules) stored(hash int32) int32 {
	if r.signedHash && hash != math.MinInt32 {
		return hash
	}
	return message.AbsHash(hash)
}

// maxDiffMillis is the greatest time difference where milliseconds are bounded, in seconds.
const maxDiffMillis = math.MaxInt32 / 1000

// timeDiff is an entry's TimeDiff: whole seconds from begin to storeTime, both in ms, not below 0 (R-E-055).
func (r rules) timeDiff(storeTime, begin int64) int32 {
	diff, most := (storeTime-begin)/1000, int64(math.MaxInt32)
	if r.clampsMillis {
		most = maxDiffMillis
	}
	if begin <= 0 {
		return 0
	}
	return int32(min(max(diff, 0), most))
}

// clockSlack is how much a file's times may be off, in ms, because the clock was set back while it was written.
const clockSlack = 3_600_000

// overlaps says whether the file may hold a message stored from begin to end.
func (h Header) overlaps(begin, end int64) bool {
	lo, hi := min(h.BeginTimestamp, h.EndTimestamp), max(h.BeginTimestamp, h.EndTimestamp)
	return (lo <= end || lo-end <= clockSlack) && (begin <= hi || begin-hi <= clockSlack)
}

// mayMatch says whether an entry may be of a message stored from begin to end, as far as its seconds tell. It never says
// no to one that is: entry 1 has the header's own time whatever its difference says (formats.md 15, trap 21), and at either
// bound the difference says only which side the time is on.
func (h Header) mayMatch(number int32, e Entry, begin, end int64) bool {
	if number == 1 {
		return begin <= h.BeginTimestamp && h.BeginTimestamp <= end
	}
	if h.BeginTimestamp <= 0 || h.BeginTimestamp > math.MaxInt64/2 {
		return true
	}
	from := h.BeginTimestamp + int64(e.TimeDiff)*1000
	after := e.TimeDiff > 0 && from > end
	before := e.TimeDiff < maxDiffMillis && from+999 < begin
	return !after && !before
}
