package inspect_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

func TestFindSaysHowFarItLooked(t *testing.T) {
	d, err := inspect.Open(os.DirFS(golden.Unpack(t, "rocketmq-4.9.7/missing-index")))
	require.NoError(t, err)
	looked := &inspect.Looked{}
	find := func(key string, most int64) (n int) {
		for _, err := range d.Find(t.Context(), inspect.Filter{Topic: "GoldenNormal", Key: key}, inspect.FindOptions{MaxScan: most, Looked: looked}, func(inspect.Finding) {}) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	require.Equal(t, 1, find("key0", 0))
	require.Equal(t, looked.LogStart, looked.From)
	whole := looked.To
	require.Zero(t, find("key0", 100_000))
	require.Greater(t, looked.From, looked.LogStart)
	require.LessOrEqual(t, looked.To-looked.From, int64(100_000))
	require.Equal(t, whole, looked.To)
	require.True(t, looked.Scanned())
}

// R-E-093: a record by its place in a queue, also where the queue's files are gone.
func TestEveryRecordIsFoundByItsPlace(t *testing.T) {
	for _, name := range []string{"rocketmq-4.9.7/clean", "rocketmq-5.3.3/missing-cq", "rocketmq-3.1.4/clean"} {
		d, err := inspect.Open(os.DirFS(golden.Unpack(t, name)))
		require.NoError(t, err)
		n := 0
		for r, err := range d.Log(t.Context(), inspect.LogRange{}, func(inspect.Finding) {}) {
			require.NoError(t, err)
			if n++; n%7 != 0 || !r.SysFlag.Queued() {
				continue
			}
			var got []int64
			for r, err := range d.ByPlace(t.Context(), string(r.Topic), r.QueueID, r.QueueOffset, inspect.FindOptions{}, func(inspect.Finding) {}) {
				require.NoError(t, err)
				got = append(got, r.PhysicalOffset)
			}
			require.Contains(t, got, r.PhysicalOffset, "%s: %s/%d/%d", name, r.Topic, r.QueueID, r.QueueOffset)
		}
		require.Positive(t, n)
	}
}

func ExampleDir_Find() {
	looked := &inspect.Looked{}
	for r, err := range mustOpen(exampleStore()).Find(context.Background(), inspect.Filter{Topic: "TopicA", Key: "order-1"}, inspect.FindOptions{Looked: looked}, func(inspect.Finding) {}) {
		fmt.Println(r.PhysicalOffset, err)
	}
	fmt.Println(looked)
	// Output:
	// 4096 <nil>
	// 1 index files were asked
}

func ExampleDir_ByPlace() {
	for r, err := range mustOpen(exampleStore()).ByPlace(context.Background(), "TopicA", 0, 0, inspect.FindOptions{}, func(inspect.Finding) {}) {
		fmt.Println(r.PhysicalOffset, err)
	}
	// Output: 0 <nil>
}

func ExampleDir_FromTime() {
	for r, err := range mustOpen(exampleStore()).FromTime(context.Background(), 1700000000100, inspect.Filter{}, func(inspect.Finding) {}) {
		fmt.Println(r.PhysicalOffset, err)
	}
	// Output:
	// 202 <nil>
	// 4096 <nil>
}

func ExampleDir_UnitAt() {
	u, ok, err := mustOpen(exampleStore()).UnitAt("TopicA", 0, 1)
	fmt.Println(u.PhysicalOffset, u.Size, ok, err)
	// Output: 101 101 true <nil>
}
