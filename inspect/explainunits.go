package inspect

import (
	"fmt"
	"strconv"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// pointsTo notes what lies at a physical offset.
func (x *explainer) pointsTo(off int64) {
	r, ok, err := x.dir.RecordAt(off, func(Finding) {})
	switch {
	case err != nil:
		x.Notes = append(x.Notes, "what it points to could not be read: "+err.Error())
	case !ok:
		x.Notes = append(x.Notes, fmt.Sprintf("no record starts at %d", off))
	default:
		file, at := r.place()
		note := fmt.Sprintf("the record at %d (%s, offset %d): %s/%d/%d, %d bytes", off, file, at, r.Topic, r.QueueID, r.QueueOffset, r.Size)
		if r.Damaged != "" {
			note += ", damaged"
		}
		x.Notes = append(x.Notes, note)
	}
}

func (x *explainer) queueUnit() {
	off := x.number("physical offset", 8, nil)
	size := x.number("record size", 4, nil)
	x.number("tags code", 8, func(v int64) string {
		if consumequeue.IsExtAddress(v) {
			return fmt.Sprintf("address %d in the extension", consumequeue.ExtOffset(v))
		}
		return decimal(v)
	})
	u := consumequeue.Unit{PhysicalOffset: off, Size: int32(size)}
	switch {
	case u.IsFiller():
		x.Notes = append(x.Notes, "a filler: the queue has no record at this offset")
	case u.Valid():
		x.pointsTo(off)
	}
}

func (x *explainer) batchUnit() {
	off := x.number("physical offset", 8, nil)
	size := x.number("record size", 4, nil)
	x.number("tags code", 8, nil)
	x.number("store time", 8, timeText)
	x.number("base queue offset", 8, nil)
	x.number("messages", 2, nil)
	x.number("compacted offset", 4, nil)
	x.number("reserved", 4, nil)
	if size > 0 {
		x.pointsTo(off)
	}
}

func (x *explainer) state() {
	off := x.number("physical offset", 8, nil)
	size := x.number("record size", 4, nil)
	x.number("store time, s", 4, func(v int64) string { return timeText(1000 * int64(uint32(v))) })
	x.number("hash of the producer group", 4, nil)
	x.number("state", 4, func(v int64) string { return txstate.State(v).String() })
	if size > 0 {
		x.pointsTo(off)
	}
}

func (x *explainer) redo() {
	off := x.number("physical offset", 8, nil)
	size := x.number("record size", 4, nil)
	x.number("event", 8, func(v int64) string {
		if v == redolog.Prepared {
			return "prepared"
		}
		return fmt.Sprintf("end of the transaction at %d", v)
	})
	if size > 0 {
		x.pointsTo(off)
	}
}

func (x *explainer) timerLog() {
	x.number("unit size", 4, nil)
	x.number("position of the one before", 8, nil)
	x.number("magic", 4, nil)
	x.number("write time", 8, timeText)
	x.number("delay, ms", 4, nil)
	off := x.number("physical offset", 8, nil)
	size := x.number("record size", 4, nil)
	x.number("hash of the topic", 4, nil)
	x.number("reserved", 8, nil)
	if size > 0 {
		x.pointsTo(off)
	}
}

func (x *explainer) timerWheel() {
	x.number("time / precision", 8, nil)
	x.number("first position", 8, nil)
	x.number("last position", 8, nil)
	x.number("count", 4, nil)
	x.number("magic", 4, nil)
}

func (x *explainer) checkpoint() error {
	x.What = "checkpoint"
	if err := x.read(0, x.f.size); err != nil {
		return err
	}
	x.number("time of the log", 8, timeText)
	x.number("time of the queues", 8, timeText)
	x.number("time of the index", 8, timeText)
	x.number("flushed offset of the master", 8, nil)
	x.number("confirmed offset", 8, nil)
	x.add("unused", x.f.size-x.at, "")
	if x.f.size != recovery.CheckpointSize {
		x.Notes = append(x.Notes, fmt.Sprintf("the file has %d bytes, not %d", x.f.size, recovery.CheckpointSize))
	}
	return nil
}

// extension explains a unit of a queue's extension.
func (x *explainer) extension(start int64) error {
	pos := int64(0)
	for e, err := range consumequeue.ScanExt(x.File, start, x.f, x.f.size) {
		if _, bad := corruption(err, BadUnit); bad {
			break
		}
		if err != nil {
			return err
		}
		pos = e.Offset - start
		size := int64(e.Size)
		if e.End {
			size = 2
		}
		if pos+size <= x.Offset {
			pos += size
			continue
		}
		if err := x.read(pos, size); err != nil {
			return err
		}
		x.What = fmt.Sprintf("extension unit at address %d", e.Offset)
		if e.End {
			x.number("end mark", 2, nil)
			return nil
		}
		x.number("unit size", 2, nil)
		x.number("tags code", 8, nil)
		x.number("store time", 8, timeText)
		n := x.number("bitmap length", 2, nil)
		x.add("bitmap", n, "")
		return nil
	}
	x.What = "no extension unit: behind the last one that can be believed"
	if err := x.read(pos, min(x.f.size-pos, maxTorn)); err != nil {
		return err
	}
	x.add("rest of the file", x.Size, "")
	return nil
}

// index explains a byte of an index file.
func (x *explainer) index() error {
	shape, known, err := index.InferShape(x.File, x.f, x.f.size)
	if _, bad := corruption(err, BadIndex); err != nil && !bad {
		return err
	}
	if !known && x.dir.indexShape().Size() == x.f.size {
		shape = x.dir.indexShape()
	}
	slots := index.HeaderSize + int64(shape.Slots)*index.SlotSize
	switch {
	case x.Offset < index.HeaderSize:
		if err := x.read(0, index.HeaderSize); err != nil {
			return err
		}
		x.What = "header of an index file"
		x.number("begin time", 8, timeText)
		x.number("end time", 8, timeText)
		x.number("begin offset", 8, nil)
		x.number("end offset", 8, nil)
		x.number("slot count", 4, nil)
		x.number("index count", 4, nil)
	case shape.Slots == 0:
		return fmt.Errorf("%s: %w: the file does not show how many slots it has", x.File, ErrNothingThere)
	case x.Offset < slots:
		at := (x.Offset - index.HeaderSize) / index.SlotSize
		if err := x.read(index.HeaderSize+at*index.SlotSize, index.SlotSize); err != nil {
			return err
		}
		x.What = fmt.Sprintf("slot %d of %d", at, shape.Slots)
		x.number("newest entry", 4, nil)
	default:
		return x.indexEntry(slots, shape)
	}
	return nil
}

func (x *explainer) indexEntry(slots int64, shape index.Shape) error {
	n := (x.Offset - slots) / index.EntrySize
	if err := x.read(slots+n*index.EntrySize, index.EntrySize); err != nil {
		return err
	}
	x.What = fmt.Sprintf("entry %d of an index file with room for %d", n, shape.Entries-1)
	hash := x.number("key hash", 4, nil)
	off := x.number("physical offset", 8, nil)
	x.number("seconds since the file's begin", 4, nil)
	x.number("entry before it in the chain", 4, nil)
	if hash == 0 && off == 0 {
		x.Notes = append(x.Notes, "all zeros: no key was put here")
		return nil
	}
	x.Notes = append(x.Notes, "it is in the chain of slot "+strconv.Itoa(int(index.Slot(int32(hash), shape.Slots))))
	x.pointsTo(off)
	return nil
}
