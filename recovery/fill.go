package recovery

import (
	"bytes"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/message"
)

// lostTopic is the topic of the records that stand for damaged bytes which were passed over. They count as rolled back, so
// that no line of RocketMQ puts them into a queue or the index.
const lostTopic = "LOST_AND_FOUND"

// fillerBody is the longest body of such a record, in bytes: the smallest limit that a line has for old records is larger.
const fillerBody = 64 << 10

// fillHoles writes over damage that is passed over, so that every reader finds its way: a blank where it reaches to the end
// of its segment, else records as long as the hole.
func (r *runner) fillHoles() error {
	for _, h := range r.d.holes {
		segmentEnd := h.from - h.from%r.Log.SegmentSize() + r.Log.SegmentSize()
		b := Fillers(h.from, h.to, r.d.lastTime)
		if h.to == segmentEnd {
			b = commitlog.AppendBlank(nil, int(h.to-h.from))
		}
		if err := r.Log.Queue().WriteAt(b, h.from); err != nil {
			return err
		}
	}
	if len(r.d.holes) == 0 {
		return nil
	}
	return r.Log.Queue().Sync(0)
}

// blankUnits makes fillers of the queue units whose records lay in a hole, so that readers pass over them.
func (r *runner) blankUnits() error {
	for _, l := range r.d.Lost {
		q := r.Queues.Lookup(l.Topic, l.QueueID)
		for at := l.From; at <= l.To; at++ {
			u, err := q.Get(at)
			if err != nil {
				return err
			}
			if !r.inHole(u.PhysicalOffset) {
				continue
			}
			if err := q.Set(at, consumequeue.Filler()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *runner) inHole(offset int64) bool {
	for _, h := range r.d.holes {
		if h.from <= offset && offset < h.to {
			return true
		}
	}
	return false
}

// StandsForLoss says whether a record is one of those that stand for bytes which were passed over.
func StandsForLoss(r *commitlog.Record) bool {
	return r.SysFlag.Transaction() == message.FlagRollback && len(r.Topic) > 0 && bytes.HasPrefix([]byte(lostTopic), r.Topic)
}

// Fillers are the records that fill the log from one physical offset to another, at least [commitlog.MinRecordSize] bytes
// behind it. StoreTime, ms, is that of the record before.
func Fillers(from, to, storeTime int64) []byte {
	b := make([]byte, 0, to-from)
	shortest := (&commitlog.Record{Magic: commitlog.MagicV1, Topic: []byte(lostTopic)}).EncodedSize()
	for at := from; at < to; {
		size := to - at
		if most := int64(shortest + fillerBody); size > most {
			// What is left must have room for one more.
			size = min(most, size-int64(shortest))
		}
		rec := commitlog.Record{
			Magic: commitlog.MagicV1, PhysicalOffset: at, SysFlag: message.FlagRollback, StoreTimestamp: storeTime, PreparedTransactionOffset: at,
			Topic: []byte(lostTopic),
		}
		if size < int64(shortest) {
			rec.Topic = rec.Topic[:size-commitlog.MinRecordSize]
		} else {
			rec.Body = make([]byte, size-int64(shortest))
		}
		rec.BodyCRC = message.CRC(rec.Body)
		b = rec.AppendTo(b)
		at += size
	}
	return b
}
