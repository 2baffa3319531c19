package consumequeue_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// modelQueue is what a queue should hold, kept the simple way.
type modelQueue struct {
	fs    *memfs.FS
	table *consumequeue.Table
	q     *consumequeue.Queue

	units  map[int64]consumequeue.Unit // those that files hold, fillers too
	start  int64                       // first unit of the first file
	min    int64
	max    int64
	any    bool // there is a file
	logMin int64
}

const perFile = small / consumequeue.UnitSize

func (m *modelQueue) open(t *rapid.T) {
	if m.table != nil {
		require.NoError(t, m.table.Sync(0))
		require.NoError(t, m.table.Close())
	}
	table, err := consumequeue.OpenTable(m.fs, root, &consumequeue.Options{SegmentSize: small, MaxHole: 20, Budget: mappedfile.NewBudget(2)})
	require.NoError(t, err)
	q, err := table.Ensure("T", 0)
	require.NoError(t, err)
	m.table, m.q = table, q
	m.min = m.start
	if !m.any {
		m.start, m.min, m.max = 0, 0, 0
	}
}

// append is what Append is specified to do.
func (m *modelQueue) append(t *rapid.T) {
	index := m.max + rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 1, 4, 7, 30, -1, -3}).Draw(t, "skip")
	if m.min >= m.max && rapid.Bool().Draw(t, "anywhere") {
		index = rapid.Int64Range(0, 100).Draw(t, "index")
	}
	u := nth(index)
	err := m.q.Append(index, u)
	have, held := m.units[index]
	switch {
	case index < 0 || index < m.max && !held:
		require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
	case index < m.max && have != u:
		_, ok := errors.AsType[*consumequeue.MismatchError](err)
		require.True(t, ok)
	case index < m.max:
		require.NoError(t, err)
	case m.min < m.max && index > m.max+20:
		require.ErrorIs(t, err, consumequeue.ErrHole)
	default:
		require.NoError(t, err)
		m.place(index, u)
	}
}

func (m *modelQueue) place(index int64, u consumequeue.Unit) {
	from := m.max
	if m.min >= m.max && (index > m.max || !m.any) {
		first := index - index%perFile
		if !m.any || m.max < first {
			m.units, m.start, from = map[int64]consumequeue.Unit{}, first, first
		}
		m.min = index
	}
	for i := from; i < index; i++ {
		m.units[i] = consumequeue.Filler()
	}
	m.units[index], m.max, m.any = u, index+1, true
}

func (m *modelQueue) truncate(t *rapid.T) {
	index := rapid.Int64Range(max(0, m.start-3), m.max+2).Draw(t, "cut")
	require.NoError(t, m.q.TruncateAfter(index))
	m.max = min(m.max, index)
	m.min = min(m.min, m.max)
	for i := range m.units {
		if i >= m.max {
			delete(m.units, i)
		}
	}
	if m.max < m.start || m.max == 0 {
		m.any, m.start = false, m.max
	}
}

func (m *modelQueue) raise(t *rapid.T) {
	m.logMin = rapid.Int64Range(m.logMin, max(m.logMin, (m.max+2)*10)).Draw(t, "logMin")
	gone, err := m.q.DeleteBefore(m.logMin)
	require.NoError(t, err)
	require.NoError(t, m.q.SetMin(m.logMin))
	for range gone {
		for range perFile {
			u := m.units[m.start]
			require.True(t, u.IsFiller() || u.PhysicalOffset < m.logMin)
			delete(m.units, m.start)
			m.start++
		}
	}
	m.min = m.max
	for i := m.start; i < m.max; i++ {
		if u := m.units[i]; !u.IsFiller() && u.PhysicalOffset >= m.logMin {
			m.min = i
			break
		}
	}
}

func (m *modelQueue) check(t *rapid.T) {
	first, end := m.q.Bounds()
	require.Equal(t, [2]int64{m.min, m.max}, [2]int64{first, end})
	physical := int64(-1)
	for i := m.start; i < m.max; i++ {
		u, err := m.q.Get(i)
		require.NoError(t, err)
		require.Equal(t, m.units[i], u)
		if !u.IsFiller() {
			physical = u.End()
		}
	}
	require.Equal(t, physical, m.q.MaxPhysical())
	dst := make([]consumequeue.Unit, 200)
	n, err := m.q.Read(m.start, dst)
	require.NoError(t, err)
	require.Equal(t, m.max-m.start, int64(n))
	if m.any {
		for _, thorough := range []bool{false, true} {
			found, err := m.q.FindEnd(thorough)
			require.NoError(t, err)
			require.Equal(t, m.max, found)
		}
	}
	at := rapid.Int64Range(0, (m.max+1)*10).Draw(t, "time")
	got, err := m.q.OffsetAt(at, func(u consumequeue.Unit) (int64, error) { return u.PhysicalOffset, nil })
	require.NoError(t, err)
	want := m.max
	for i := m.max - 1; i >= m.min; i-- {
		if u := m.units[i]; !u.IsFiller() && u.PhysicalOffset >= at {
			want = i
		}
	}
	require.Equal(t, want, got)
}

// Any sequence of appends, cuts, deletions and openings leaves what the simple model says.
func TestQueueAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &modelQueue{fs: memfs.New(), units: map[int64]consumequeue.Unit{}}
		m.open(t)
		defer func() { require.NoError(t, m.table.Abandon()) }()
		t.Repeat(map[string]func(*rapid.T){
			"append":  m.append,
			"append2": m.append,
			"append3": m.append,
			"cut":     m.truncate,
			"raise":   m.raise,
			"open":    m.open,
			"":        m.check,
		})
	})
}
