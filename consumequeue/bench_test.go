package consumequeue_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// benchTable opens a table on the operating system's files.
func benchTable(b *testing.B, dir string, o *consumequeue.Options) *consumequeue.Table {
	b.Helper()
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(b, err)
	if o == nil {
		o = &consumequeue.Options{}
	}
	return openTable(b, fsys, o)
}

func BenchmarkAppend(b *testing.B) {
	for _, queues := range []int64{1, 64} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			table := benchTable(b, b.TempDir(), nil)
			qs := make([]*consumequeue.Queue, queues)
			for id := range qs {
				qs[id] = ensure(b, table, "T", int32(id))
				appendRange(b, qs[id], 0, 1) // makes the file
			}
			b.SetBytes(consumequeue.UnitSize)
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				if err := qs[i%queues].Append(i/queues+1, nth(i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	table := benchTable(b, b.TempDir(), nil)
	q := ensure(b, table, "T", 0)
	appendRange(b, q, 0, 100_000)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		if u, err := q.Get(i * 7919 % 100_000); err != nil || u.Size != 10 {
			b.Fatal(u, err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1, 32, 1024} {
		b.Run(fmt.Sprintf("units=%d", n), func(b *testing.B) {
			table := benchTable(b, b.TempDir(), nil)
			q := ensure(b, table, "T", 0)
			appendRange(b, q, 0, 100_000)
			dst := make([]consumequeue.Unit, n)
			b.SetBytes(int64(n) * consumequeue.UnitSize)
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				if got, err := q.Read(i*7919%90_000, dst); err != nil || got != n {
					b.Fatal(got, err)
				}
			}
		})
	}
}

func BenchmarkLookupBytes(b *testing.B) {
	for _, topics := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("topics=%d", topics), func(b *testing.B) {
			table := benchTable(b, b.TempDir(), nil)
			keys := make([][]byte, topics)
			for i := range keys {
				keys[i] = []byte("topic-" + strconv.Itoa(i))
				for id := range int32(4) {
					ensure(b, table, string(keys[i]), id)
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if table.LookupBytes(keys[i%topics], int32(i&3)) == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}

// BenchmarkFirstOffset is the search for the first offset in a queue of a million units.
func BenchmarkFirstOffset(b *testing.B) {
	table := benchTable(b, b.TempDir(), nil)
	q := ensure(b, table, "T", 0)
	appendRange(b, q, 0, 1_000_000)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		if err := q.SetMin(i * 7919 % 10_000_000); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFindEnd is what recovery does with each queue: the quick way and Java's, with files that are full to the middle.
func BenchmarkFindEnd(b *testing.B) {
	for _, thorough := range []bool{false, true} {
		b.Run(fmt.Sprintf("thorough=%t", thorough), func(b *testing.B) {
			table := benchTable(b, b.TempDir(), nil)
			q := ensure(b, table, "T", 0)
			appendRange(b, q, 0, 750_000)
			b.ReportAllocs()
			for b.Loop() {
				if end, err := q.FindEnd(thorough); err != nil || end != 750_000 {
					b.Fatal(end, err)
				}
			}
		})
	}
}

// BenchmarkManyQueues is R-E-047: opening 100 000 queues, the first look at each of them, and a sync when each was
// written. Files are sparse and of the default size.
func BenchmarkManyQueues(b *testing.B) {
	const most = 512
	for _, queues := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			dir := b.TempDir()
			makeQueues(b, dir, queues)
			o := func(budget *mappedfile.Budget) *consumequeue.Options { return &consumequeue.Options{Budget: budget} }
			b.Run("step=open", func(b *testing.B) {
				for b.Loop() {
					table := benchTable(b, dir, o(mappedfile.NewBudget(most)))
					require.Equal(b, queues, table.Stats().Queues)
				}
			})
			b.Run("step=bounds", func(b *testing.B) {
				for b.Loop() {
					budget := mappedfile.NewBudget(most)
					for q := range benchTable(b, dir, o(budget)).All() {
						_, end := q.Bounds()
						if u, err := q.Get(end - 1); end != 3 || err != nil || u != nth(2) || q.SetMin(0) != nil {
							b.Fatal(q.Dir(), end, u, err)
						}
					}
					mapped, _ := budget.Stats()
					require.LessOrEqual(b, mapped, most)
				}
			})
			b.Run("step=load", func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, benchTable(b, dir, o(mappedfile.NewBudget(most))).Load())
				}
			})
			b.Run("step=append", func(b *testing.B) {
				table := benchTable(b, dir, o(mappedfile.NewBudget(most)))
				for i := int64(3); b.Loop(); i++ {
					for q := range table.All() {
						if err := q.Append(i, nth(i)); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		})
	}
}

// makeQueues lays out queues of three units each, eight to a topic.
func makeQueues(b *testing.B, dir string, n int) {
	b.Helper()
	three := units(nth(0), nth(1), nth(2))
	for i := range n {
		folder := filepath.Join(dir, root, fmt.Sprintf("topic-%06d", i/8), strconv.Itoa(i%8))
		require.NoError(b, os.MkdirAll(folder, 0o755))
		name := filepath.Join(folder, mappedfile.SegmentName(0))
		require.NoError(b, os.WriteFile(name, three, 0o644))
		require.NoError(b, os.Truncate(name, consumequeue.DefaultSegmentSize))
	}
}
