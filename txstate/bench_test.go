package txstate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/txstate"
)

func benchTable(b *testing.B) *txstate.Table {
	b.Helper()
	fsys, err := mappedfile.OpenDir(b.TempDir(), nil)
	require.NoError(b, err)
	return open(b, fsys, nil)
}

// BenchmarkAppend appends prepared records, which stay open: the set grows with them.
func BenchmarkAppend(b *testing.B) {
	table := benchTable(b)
	b.SetBytes(txstate.RecordSize)
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		if err := table.Append(n, record(n)); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// BenchmarkPrepareAndCommit is a transaction's two touches of the table, with some others open.
func BenchmarkPrepareAndCommit(b *testing.B) {
	for _, open := range []int64{1, 1000} {
		b.Run(fmt.Sprintf("open=%d", open), func(b *testing.B) {
			table := benchTable(b)
			b.ReportAllocs()
			n := int64(0)
			for ; n < open; n++ {
				require.NoError(b, table.Append(n, record(n)))
			}
			for b.Loop() {
				err := table.Append(n, record(n))
				if err == nil {
					old := record(n - open)
					_, err = table.Update(n-open, old.CommitOffset, old.GroupHash, txstate.Committed)
				}
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

// manyFinished opens a table with that many finished records and 1000 open ones among them.
func manyFinished(b *testing.B, finished int64) *txstate.Table {
	b.Helper()
	table := benchTable(b)
	total := finished + 1000
	for n := range int64(1000) {
		at := (n + 1) * total / 1000
		require.NoError(b, table.Fill(at-1, txstate.Filler(record(at-1))))
		require.NoError(b, table.Append(at-1, record(at-1)))
	}
	return table
}

// BenchmarkCheckRound walks 1000 open transactions (R-B-37): the finished ones around them must not matter.
func BenchmarkCheckRound(b *testing.B) {
	for _, finished := range []int64{1_000, 100_000, 2_000_000} {
		b.Run(fmt.Sprintf("finished=%d", finished), func(b *testing.B) {
			table := manyFinished(b, finished)
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range table.All(0) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != 1000 {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkOpen opens a table of 2 000 000 finished records and 1000 open ones and finds these.
func BenchmarkOpen(b *testing.B) {
	fsys, err := mappedfile.OpenDir(b.TempDir(), nil)
	require.NoError(b, err)
	table := open(b, fsys, nil)
	require.NoError(b, table.Append(0, record(0)))
	require.NoError(b, table.Fill(2_000_999, txstate.Filler(record(0))))
	require.NoError(b, table.Close())
	for _, find := range []bool{false, true} {
		b.Run(fmt.Sprintf("find=%v", find), func(b *testing.B) {
			for b.Loop() {
				table, err := txstate.Open(fsys, txstate.Dir, nil)
				if err == nil && find {
					_, err = table.Len()
				}
				if err != nil {
					b.Fatal(err)
				}
				if err := table.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFindByOffset finds one of 1000 open transactions by its message's place.
func BenchmarkFindByOffset(b *testing.B) {
	table := manyFinished(b, 100_000)
	for b.Loop() {
		if _, err := table.FindByOffset(record(100).CommitOffset); err != nil {
			b.Fatal(err)
		}
	}
}
