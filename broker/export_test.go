package broker

import "time"

// What tests of this package see of its inside.

// ReadBatch, ReadHeartbeat and ReadLocks are the decoders of bodies; they say how much there was.
func ReadBatch(b []byte) (int, error) {
	items, err := readBatch(b)
	return len(items), err
}

func ReadHeartbeat(b []byte) (groups int, err error) {
	h, err := readHeartbeat(b)
	if err != nil {
		return 0, err
	}
	return len(h.producers) + len(h.consumers), nil
}

func ReadLocks(b []byte) (queues int, err error) {
	l, err := readLocks(b)
	if err != nil {
		return 0, err
	}
	return len(l.queues), nil
}

// LockTime is how long a queue stays locked.
func (b *Broker) LockTime() time.Duration { return b.opts.LockTimeout }

// Occupy counts so many sends and bytes of pulls as if they were under way.
func (b *Broker) Occupy(sends, pullBytes int64) {
	b.sends.Add(sends)
	b.pullBytes.Add(pullBytes)
}
