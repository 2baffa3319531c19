package index_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
)

// filler puts records with one key each, key0 key1 and so on, without allocating.
type filler struct {
	x    *index.Index
	k    index.Keys
	next int64
}

func (f *filler) put(tb testing.TB) {
	f.k.Keys = strconv.AppendInt(append(f.k.Keys[:0], "key"...), f.next, 10)
	f.k.PhysicalOffset, f.k.StoreTimestamp = f.next*200, start+f.next/100
	f.next++
	if err := f.x.Put(f.k); err != nil {
		tb.Fatal(err)
	}
}

func newFiller(b *testing.B, keys int) *filler {
	b.Helper()
	x, err := index.Open(folder(b, b.TempDir()), "index", nil)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, x.Close()) })
	f := &filler{x: x, k: index.Keys{Topic: []byte("Orders"), Keys: make([]byte, 0, 32)}}
	for range keys {
		f.put(b)
	}
	return f
}

// BenchmarkPut is one record with one key into a file of the default shape.
func BenchmarkPut(b *testing.B) {
	for _, keys := range []int{0, 5_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			f := newFiller(b, keys)
			b.ReportAllocs()
			for b.Loop() {
				f.put(b)
			}
		})
	}
}

// BenchmarkQuery looks one key up, warm. R-E-060: below 200 µs among 20,000,000 entries.
func BenchmarkQuery(b *testing.B) {
	for _, keys := range []int{100_000, 19_999_999} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			f := newFiller(b, keys)
			n := 0
			for b.Loop() {
				n = (n*7919 + 1) % keys
				hits := 0
				for _, err := range f.x.Query("Orders", "key"+strconv.Itoa(n), 0, 1<<62) {
					if err != nil {
						b.Fatal(err)
					}
					hits++
				}
				if hits == 0 {
					b.Fatalf("key%d is gone", n)
				}
			}
		})
	}
}

// BenchmarkInferShape finds the shape of a file whose slot count is not the default one.
func BenchmarkInferShape(b *testing.B) {
	fsys := folder(b, b.TempDir())
	s := index.Shape{Slots: 4_000_000, Entries: 20_000_000}
	x := open(b, fsys, s, nil)
	put(b, x, 0, start, "a b c")
	for b.Loop() {
		if found, ok, err := index.InferDir(fsys, "index"); err != nil || !ok || found != s {
			b.Fatal(found, ok, err)
		}
	}
}
