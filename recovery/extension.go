package recovery

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// ExtensionDir is where a store keeps the extensions of its queues.
const ExtensionDir = "consumequeue_ext"

// extensions reads the units of the queues' extensions that tags codes are the addresses of. It is for one goroutine.
type extensions struct {
	fsys   mappedfile.FS
	dir    string  // whose files starts lists
	starts []int64 // ascending
}

// tagsCode gives the tags code that an address stands for, and false where there is no unit.
func (e *extensions) tagsCode(topic string, id int32, address int64) (int64, bool) {
	if dir := path.Join(ExtensionDir, topic, strconv.FormatInt(int64(id), 10)); e.dir != dir {
		e.dir, e.starts = dir, e.starts[:0]
		entries, err := e.fsys.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, false
		}
		for _, entry := range entries {
			if start, ok := mappedfile.ParseSegmentName(entry.Name()); ok && entry.Type().IsRegular() {
				e.starts = append(e.starts, start)
			}
		}
	}
	offset := consumequeue.ExtOffset(address)
	for _, start := range slices.Backward(e.starts) {
		if start <= offset {
			return e.read(start, offset-start)
		}
	}
	return 0, false
}

// read gives the tags code of the unit at a byte of a file.
func (e *extensions) read(start, at int64) (int64, bool) {
	f, err := e.fsys.OpenFile(path.Join(e.dir, mappedfile.SegmentName(start)), os.O_RDONLY, 0)
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }() // read only
	b := make([]byte, consumequeue.ExtUnitMin)
	if n, _ := f.ReadAt(b, at); n < len(b) {
		return 0, false
	}
	return consumequeue.ExtTagsCode(b)
}

// sameUnit says whether two units mean the same record with the same use. The delivery time of a delayed message may
// differ by what passes between 3.1's two readings of the clock. An address stands for the tags code of the unit in the
// queue's extension; without extensions it is believed.
func sameUnit(have, want consumequeue.Unit, q *consumequeue.Queue, ext *extensions) bool {
	if have.PhysicalOffset != want.PhysicalOffset || have.Size != want.Size {
		return false
	}
	if have.TagsCode == want.TagsCode {
		return true
	}
	if consumequeue.IsExtAddress(have.TagsCode) {
		if ext == nil {
			return true
		}
		code, ok := ext.tagsCode(q.Topic(), q.ID(), have.TagsCode)
		return ok && code == want.TagsCode
	}
	const clockSlack = 1000 // ms
	diff := have.TagsCode - want.TagsCode
	return q.Topic() == ScheduleTopic && -clockSlack <= diff && diff <= clockSlack
}
