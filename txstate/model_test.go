package txstate_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

// model is what a table should hold.
type model struct {
	fsys        *memfs.FS
	table       *txstate.Table
	records     map[int64]txstate.Record
	first, next int64
}

func (m *model) set(r txstate.Record, number int64) {
	m.records[number] = r
	m.next = number + 1
}

func (m *model) begin(number int64) { m.first, m.next = number/perFile*perFile, number/perFile*perFile }

func (m *model) append(t *rapid.T) {
	number := m.next + rapid.Int64Range(-3, 15).Draw(t, "ahead")
	r := record(number)
	err := m.table.Append(number, r)
	switch {
	case number < 0 || len(m.records) > 0 && number < m.first:
		require.ErrorIs(t, err, txstate.ErrNotFound)
	case len(m.records) > 0 && number < m.next:
		if have := m.records[number]; have.CommitOffset == r.CommitOffset && have.GroupHash == r.GroupHash {
			require.NoError(t, err)
		} else {
			require.Error(t, err)
		}
	default:
		require.NoError(t, err)
		near := r
		if len(m.records) == 0 {
			m.begin(number)
		} else {
			near = m.records[m.next-1]
		}
		for m.next < number {
			m.set(txstate.Filler(near), m.next)
		}
		m.set(r, number)
	}
}

func (m *model) update(t *rapid.T) {
	number := rapid.Int64Range(m.first-2, m.next+2).Draw(t, "number")
	r, ok := m.records[number]
	offset, hash := r.CommitOffset+rapid.Int64Range(0, 1).Draw(t, "wrong"), r.GroupHash+rapid.Int32Range(0, 1).Draw(t, "other")
	to := rapid.SampledFrom([]txstate.State{txstate.Committed, txstate.RolledBack}).Draw(t, "to")
	resolved, err := m.table.Update(number, offset, hash, to)
	switch {
	case !ok:
		require.ErrorIs(t, err, txstate.ErrNotFound)
	case offset != r.CommitOffset:
		require.ErrorIs(t, err, txstate.ErrOtherMessage)
	case hash != r.GroupHash:
		require.ErrorIs(t, err, txstate.ErrOtherGroup)
	default:
		require.NoError(t, err)
		require.Equal(t, r.State != txstate.Prepared, resolved)
		if !resolved {
			r.State = to
			m.records[number] = r
		}
	}
}

func (m *model) truncate(t *rapid.T) {
	number := rapid.Int64Range(m.first-1, m.next+3).Draw(t, "number")
	require.NoError(t, m.table.TruncateAfter(number))
	if number >= m.next {
		return
	}
	maps.DeleteFunc(m.records, func(n int64, _ txstate.Record) bool { return n >= number })
	if m.next = max(number, 0); len(m.records) == 0 {
		m.first = m.next
	}
}

func (m *model) deleteBefore(t *rapid.T) {
	logStart := rapid.Int64Range(0, record(m.next+5).CommitOffset).Draw(t, "log start")
	_, err := m.table.DeleteBefore(logStart)
	require.NoError(t, err)
	for m.first+perFile < m.next && m.records[m.first+perFile-1].CommitOffset < logStart {
		for range perFile {
			delete(m.records, m.first)
			m.first++
		}
	}
}

func (m *model) reopen(t *rapid.T) {
	require.NoError(t, m.table.Sync(0))
	require.NoError(t, m.table.Close())
	var err error
	m.table, err = txstate.Open(m.fsys, txstate.Dir, small())
	require.NoError(t, err)
	if len(m.records) == 0 {
		m.first, m.next = 0, 0
	}
}

func (m *model) check(t *rapid.T) {
	first, next := m.table.Bounds()
	require.Equal(t, [2]int64{m.first, m.next}, [2]int64{first, next})
	numbers := slices.Sorted(maps.Keys(m.records))
	var all, open, wantOpen []int64
	for e, err := range m.table.Records(0) {
		require.NoError(t, err)
		require.Equal(t, m.records[e.Number], e.Record)
		all = append(all, e.Number)
	}
	require.Equal(t, numbers, all)
	for e, err := range m.table.All(0) {
		require.NoError(t, err)
		open = append(open, e.Number)
	}
	for _, n := range numbers {
		if m.records[n].State == txstate.Prepared {
			wantOpen = append(wantOpen, n)
			found, err := m.table.FindByOffset(m.records[n].CommitOffset)
			require.NoError(t, err)
			require.Equal(t, n, found)
		}
	}
	require.Equal(t, wantOpen, open)
	count, err := m.table.Len()
	require.NoError(t, err)
	require.Equal(t, len(wantOpen), count)
}

// Any run of calls gives what a plain map gives.
func TestTableAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{fsys: memfs.New(), records: map[int64]txstate.Record{}}
		var err error
		m.table, err = txstate.Open(m.fsys, txstate.Dir, small())
		require.NoError(t, err)
		t.Repeat(map[string]func(*rapid.T){
			"append":       m.append,
			"append again": m.append,
			"update":       m.update,
			"update again": m.update,
			"truncate":     m.truncate,
			"delete":       m.deleteBefore,
			"reopen":       m.reopen,
			"check":        m.check,
		})
		m.check(t)
		require.NoError(t, m.table.Abandon())
	})
}
