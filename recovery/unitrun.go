package recovery

import "github.com/rocketstore/rocketstore/consumequeue"

// unitRun holds back units that follow each other at the end of a queue, so that they are written at once.
type unitRun struct {
	queue *consumequeue.Queue
	from  int64 // queue offset of the first
	units []byte
	runs  int // so many were written
}

// put puts a unit into the queue, or holds it back when it continues the queue, long units at most. Every other unit finds the
// queue with those that were held back in it.
func (u *unitRun) put(s *queueSink, p Placement, long int) error {
	if n := len(u.units) / consumequeue.UnitSize; n > 0 {
		if p.QueueOffset == u.from+int64(n) && n < long {
			u.units = p.Unit.AppendTo(u.units)
			return nil
		}
		if err := u.flush(); err != nil {
			return err
		}
	}
	if first, end := u.queue.Bounds(); long > 0 && end > first && p.QueueOffset == end && end <= maxQueueOffset {
		u.from, u.units = end, p.Unit.AppendTo(u.units)
		return nil
	}
	return s.putIn(u.queue, p)
}

// flush writes what was held back. After an error nothing is held back any more.
func (u *unitRun) flush() error {
	if len(u.units) == 0 {
		return nil
	}
	err := u.queue.AppendRun(u.from, u.units)
	u.runs++
	u.forget()
	return err
}

func (u *unitRun) forget() { u.units = u.units[:0] }
