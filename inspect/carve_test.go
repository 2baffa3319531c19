package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// carved are the offsets in an image at which records are found.
func carved(t testing.TB, image []byte, o inspect.CarveOptions) (at []int64) {
	t.Helper()
	for r, err := range inspect.Carve(t.Context(), "image", bytes.NewReader(image), int64(len(image)), o) {
		require.NoError(t, err)
		require.Equal(t, image[r.Offset:r.Offset+int64(r.Size)], r.AppendTo(nil))
		at = append(at, r.Offset)
	}
	return at
}

// R-E-099: all records of a log are found when its files lie somewhere in an image, also across the borders of windows.
func TestCarveFindsEveryRecordOfAnImage(t *testing.T) {
	for _, name := range []string{"rocketmq-3.1.4/clean", "rocketmq-4.9.7/clean", "rocketmq-4.9.7/ipv6", "rocketmq-5.3.3/crc", "rocketmq-5.3.3/clean"} {
		dir := golden.Unpack(t, name)
		d, err := inspect.Open(os.DirFS(dir))
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(1, 2))
		junk := func() []byte {
			b := make([]byte, rng.IntN(700_000))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			return b
		}
		image := junk()
		var want []int64
		segs, _, err := d.Segments(func(inspect.Finding) {})
		require.NoError(t, err)
		starts := make(map[string]int64)
		for _, s := range slices.Backward(segs) {
			b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.File)))
			require.NoError(t, err)
			starts[s.File] = int64(len(image)) - s.Start
			image = append(append(image, b...), junk()...)
		}
		for r, err := range d.Log(t.Context(), inspect.LogRange{}, func(inspect.Finding) {}) {
			require.NoError(t, err)
			want = append(want, starts[r.File]+r.PhysicalOffset)
		}
		slices.Sort(want)
		require.Equal(t, want, carved(t, image, inspect.CarveOptions{}), name)
	}
}

func TestCarveTakesWhatIsWholeBesideDamage(t *testing.T) {
	image := append(make([]byte, 13), records(0, 4)...)
	image[13+recordSize+91] ^= 1    // a byte of the second body
	image[13+2*recordSize+3] ^= 0x7 // the third one's size
	require.Equal(t, []int64{13, 13 + 3*recordSize}, carved(t, image, inspect.CarveOptions{}))
	stats := &inspect.CarveStats{}
	require.Equal(t, []int64{13, 13 + recordSize, 13 + 3*recordSize}, carved(t, image, inspect.CarveOptions{Damaged: true, Stats: stats}))
	require.Equal(t, inspect.CarveStats{Bytes: int64(len(image)), Records: 3, Damaged: 1, Nearly: 1}, *stats)
}

// counting counts the bytes that are read.
type counting struct {
	io.ReaderAt
	n int64
}

func (c *counting) ReadAt(b []byte, off int64) (int, error) {
	c.n += int64(len(b))
	return c.ReaderAt.ReadAt(b, off)
}

func TestCarveReadsRubbishNotForEver(t *testing.T) {
	t.Parallel()
	// Heads of records one behind the other, of which each claims all the rest as its body.
	const size = 256 << 10
	image := make([]byte, size)
	for at := 0; at+recordSize < size; at += recordSize {
		r := record(0, string(make([]byte, size-at-recordSize+4)))
		copy(image[at:], r[:91])
		copy(image[size-8:], r[len(r)-9:])
	}
	c := &counting{ReaderAt: bytes.NewReader(image)}
	for _, err := range inspect.Carve(t.Context(), "image", c, size, inspect.CarveOptions{}) {
		require.NoError(t, err)
	}
	require.Less(t, c.n, int64(4*size+4*(16<<20)+100*size))
}

func FuzzCarve(f *testing.F) {
	f.Add(records(0, 2))
	f.Add(append([]byte{1, 2, 3}, records(77, 1)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		last := int64(-1)
		for _, at := range carved(t, b, inspect.CarveOptions{}) {
			require.Greater(t, at, last)
			last = at
		}
	})
}

func ExampleCarve() {
	image := append([]byte("what a disk holds"), records(4096, 1)...)
	for r, err := range inspect.Carve(context.Background(), "disk.img", bytes.NewReader(image), int64(len(image)), inspect.CarveOptions{}) {
		fmt.Println(r.Offset, r.PhysicalOffset, string(r.Body), err)
	}
	// Output: 17 4096 body <nil>
}
