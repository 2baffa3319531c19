package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
)

// Carved is a message that was found in a file of any kind.
type Carved struct {
	File   string
	Offset int64 // of the record's first byte in File
	// Record's slices are valid until the next step of the iteration.
	commitlog.Record
	// Damaged is as in [LogRecord]; such ones are given only when they are asked for.
	Damaged string
}

// CarveOptions steer [Carve].
type CarveOptions struct {
	// Damaged gives records whose body does not match its CRC as well.
	Damaged bool
	// MaxRecord bounds the size of a record, in bytes. Default 16 MiB, four times what brokers take at most by default.
	MaxRecord int64
	// Progress, if not nil, is called now and then with the bytes of the file that are done.
	Progress func(done int64)
	// Stats, if not nil, is filled in while the search goes on.
	Stats *CarveStats
}

// CarveStats says what a search for records came upon.
type CarveStats struct {
	Bytes   int64 `json:"bytes"`   // looked at
	Records int64 `json:"records"` // given
	Damaged int64 `json:"damaged"` // whole records whose body does not match its CRC
	Nearly  int64 `json:"nearly"`  // places with the magic of a record whose lengths do not add up
}

// carveWindow is what Carve reads at a time.
const carveWindow = 1 << 20

// Carve looks for records in size bytes of any file: a damaged segment, an image of a disk, what is left of a deleted file.
// It takes what has a record's magic, whose lengths add up and whose body matches its CRC, wherever it lies; where a record
// says that it lay is in its PhysicalOffset. It goes on right behind a record that it took, and at the next byte behind
// another place. The lengths are looked at before the body is read, and bodies that fail are read up to four times the
// file's size at most in all: so it ends, whatever the bytes are.
//
// Memory: a window of 1 MiB, and one record.
func Carve(ctx context.Context, name string, r io.ReaderAt, size int64, o CarveOptions) iter.Seq2[Carved, error] {
	return func(yield func(Carved, error) bool) {
		if o.MaxRecord <= 0 {
			o.MaxRecord = maxTorn
		}
		if o.Stats == nil {
			o.Stats = &CarveStats{}
		}
		c := &carver{name: name, r: r, size: size, o: o, s: o.Stats, yield: yield, budget: 4*size + 4*o.MaxRecord}
		if err := c.run(ctx); err != nil && !errors.Is(err, errStop) {
			yield(Carved{}, err)
		}
	}
}

// carver is one run of Carve.
type carver struct {
	name   string
	r      io.ReaderAt
	size   int64
	o      CarveOptions
	s      *CarveStats
	yield  func(Carved, error) bool
	budget int64 // bytes of records that may still be read in vain
	win    []byte
	body   []byte
}

func (c *carver) run(ctx context.Context) error {
	c.win = make([]byte, min(carveWindow, c.size))
	for pos := int64(0); pos+commitlog.MinRecordSize <= c.size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := c.read(c.win, pos)
		if err != nil {
			return err
		}
		b := c.win[:n]
		next, err := c.window(pos, b)
		if err != nil {
			return err
		}
		// The last bytes may be the begin of a magic.
		pos = max(next, pos+max(int64(n)-7, 1))
		c.s.Bytes = min(pos, c.size)
		if c.o.Progress != nil {
			c.o.Progress(c.s.Bytes)
		}
		if n < len(c.win) {
			break // the file became shorter
		}
	}
	c.s.Bytes = c.size
	return nil
}

// read fills b from a position on, as far as the file goes.
func (c *carver) read(b []byte, pos int64) (int, error) {
	n, err := c.r.ReadAt(b[:min(int64(len(b)), c.size-pos)], pos)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: offset %d: %w", c.name, pos, err)
	}
	return n, err
}

// window takes the records that start in a window, and gives the position behind the last one.
func (c *carver) window(pos int64, b []byte) (next int64, err error) {
	const posMagic = 4
	for at := 0; at < len(b); at++ {
		k := bytes.Index(b[at:], []byte{0xDA, 0xA3, 0x20})
		if k < 0 {
			return next, nil
		}
		if at += k; at+3 >= len(b) || at < posMagic && pos > 0 {
			continue // the next window has it, or the one before had
		}
		if last := b[at+3]; at < posMagic || last != byte(commitlog.MagicV1&0xFF) && last != byte(commitlog.MagicV2&0xFF) {
			continue
		}
		start := pos + int64(at) - posMagic
		if start < next {
			continue // inside the last record
		}
		end, err := c.record(start)
		if err != nil {
			return next, err
		}
		if end > 0 {
			if next = end; end-pos >= int64(len(b)) {
				return next, nil
			}
			at = max(at, int(end-pos)+posMagic-1)
		}
	}
	return next, nil
}

// record takes the record at a position, and gives where it ends; 0 when there is none.
func (c *carver) record(start int64) (end int64, err error) {
	size, err := c.believe(start)
	if err != nil || size == 0 {
		return 0, err
	}
	if c.budget < size {
		c.s.Nearly++
		return 0, nil
	}
	if int64(cap(c.body)) < size {
		c.body = make([]byte, size)
	}
	b := c.body[:size]
	n, err := c.read(b, start)
	if err != nil || int64(n) < size {
		return 0, err
	}
	r, err := commitlog.Decode(b)
	if err != nil {
		c.budget -= size
		c.s.Nearly++
		return 0, nil //nolint:nilerr // it is none
	}
	found := Carved{File: c.name, Offset: start, Record: r}
	stored, computed, ok := commitlog.PropertyCRC(b)
	if r.CheckBody() != nil || ok && stored != computed {
		c.budget -= size
		c.s.Damaged++
		if found.Damaged = DamagedCRC; !c.o.Damaged {
			return 0, nil
		}
	} else {
		end = start + size // inside a damaged one a whole one may lie
	}
	c.s.Records++
	if !c.yield(found, nil) {
		return 0, errStop
	}
	return end, nil
}

// believe says how large the record at a position is, 0 when its lengths do not add up. It reads what holds the lengths only.
func (c *carver) believe(start int64) (int64, error) {
	var head [commitlog.MinRecordSize + 2*12]byte
	n, err := c.read(head[:], start)
	if err != nil || n < commitlog.MinRecordSize {
		return 0, err
	}
	size := int64(int32(binary.BigEndian.Uint32(head[:])))
	flags := message.SysFlag(binary.BigEndian.Uint32(head[36:]))
	at := int64(84) // of the body's length
	for _, f := range []message.SysFlag{message.FlagBornHostIPv6, message.FlagStoreHostIPv6} {
		if flags.Has(f) {
			at += 12
		}
	}
	if size < commitlog.MinRecordSize || size > c.o.MaxRecord || size > c.size-start || at+4 > int64(n) {
		c.s.Nearly++
		return 0, nil
	}
	body := int64(int32(binary.BigEndian.Uint32(head[at:])))
	at += 4 + body
	width := int64(1)
	if binary.BigEndian.Uint32(head[4:]) == commitlog.MagicV2 {
		width = 2
	}
	if body < 0 || at+width+2 > size {
		c.s.Nearly++
		return 0, nil
	}
	var tail [2]byte
	if n, err = c.read(tail[:width], start+at); err != nil || int64(n) < width {
		return 0, err
	}
	topic := int64(tail[0])
	if width == 2 {
		topic = int64(binary.BigEndian.Uint16(tail[:]))
	}
	at += width + topic
	if at+2 > size {
		c.s.Nearly++
		return 0, nil
	}
	if n, err = c.read(tail[:], start+at); err != nil || n < 2 {
		return 0, err
	}
	if at+2+int64(binary.BigEndian.Uint16(tail[:])) != size {
		c.s.Nearly++
		return 0, nil
	}
	return size, nil
}
