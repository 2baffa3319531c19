package commitlog

import "github.com/rocketstore/rocketstore/mappedfile"

// DeleteBefore removes the segments that lie wholly before an offset, the oldest first, never the one that is written, and
// gives their names. It keeps appends waiting for as long as that takes, so whoever has many calls it for each. Views of the
// segments stay valid. Each removal is durable before the next.
func (l *Log) DeleteBefore(offset int64) ([]string, error) {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if l.closed {
		return nil, mappedfile.ErrClosed
	}
	return l.queue.DeleteBefore(offset)
}
