package broker

import (
	"fmt"
	"sync"
	"time"
)

// meter knows how fast messages came and went: it looks at the counters once a second and remembers ten minutes.
type meter struct {
	mu       sync.Mutex
	put, got tally
	day      int // of the year, at the last look
}

// tally are the totals of one counter, the newest last.
type tally struct {
	totals           []int64 // one a second
	yesterday, today int64   // totals at the last two midnights
	now              int64
}

// meterSpan is how many looks are remembered: ten minutes.
const meterSpan = 601

// look notes the totals of now.
func (m *meter) look(now time.Time, put, got int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if day := now.YearDay(); day != m.day {
		if m.day != 0 {
			m.put.midnight(put)
			m.got.midnight(got)
		}
		m.day = day
	}
	m.put.add(put)
	m.got.add(got)
}

// read gives copies.
func (m *meter) read() (put, got tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.put.clone(), m.got.clone()
}

func (t *tally) add(total int64) {
	if t.now = total; len(t.totals) == meterSpan {
		t.totals = append(t.totals[:0], t.totals[1:]...)
	}
	t.totals = append(t.totals, total)
}

func (t *tally) midnight(total int64) { t.yesterday, t.today = t.today, total }

func (t *tally) clone() tally {
	c := *t
	c.totals = append([]int64(nil), t.totals...)
	return c
}

// rates are messages a second over the last ten seconds, minute and ten minutes, as the tools print them.
func (t *tally) rates() string {
	return fmt.Sprintf("%.2f %.2f %.2f", t.rate(10), t.rate(60), t.rate(600))
}

// rate is over so many seconds, or since the start.
func (t *tally) rate(seconds int) float64 {
	last := len(t.totals) - 1
	seconds = min(seconds, last)
	if seconds <= 0 {
		return 0
	}
	return float64(t.totals[last]-t.totals[last-seconds]) / float64(seconds)
}
