package commitlog

import (
	"bytes"
	"fmt"
)

// sectorSize is the least that a disk writes as a whole.
const sectorSize = 512

// checkTorn looks for sectors of topic and properties that were not written; at is the record's place in its file. The rest
// of a record needs no such look: a missing sector that holds a piece of the header takes its magic or its lengths away,
// and the body has its CRC. The error matches ErrTorn.
func (r *Record) checkTorn(at int64) error {
	end := at + int64(r.Size)
	properties := end - int64(len(r.Properties))
	if from := missingSector(r.Properties, properties); from >= 0 {
		return fmt.Errorf("%w: zeros in its properties, from byte %d of %d on", ErrTorn, from-at, r.Size)
	}
	if from := missingSector(r.Topic, properties-2-int64(len(r.Topic))); from >= 0 {
		return fmt.Errorf("%w: zeros in its topic, from byte %d of %d on", ErrTorn, from-at, r.Size)
	}
	return nil
}

// missingSector gives the place of the first sector whose part of b, which lies at the position at of its file, is zero; -1
// for none.
func missingSector(b []byte, at int64) int64 {
	for from := at; len(b) > 0; {
		n := min(sectorSize-from%sectorSize, int64(len(b)))
		if b[0] == 0 && len(bytes.TrimLeft(b[:n], "\x00")) == 0 {
			return from
		}
		b, from = b[n:], from+n
	}
	return -1
}
