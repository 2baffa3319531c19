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

func TestStatAccountsForEveryByteOfTheLog(t *testing.T) {
	t.Parallel()
	for _, name := range golden.Names() {
		d, err := inspect.Open(os.DirFS(golden.Unpack(t, name)))
		require.NoError(t, err)
		s, err := d.Stat(t.Context(), inspect.StatOptions{}, func(inspect.Finding) {})
		require.NoError(t, err)
		l := s.Log
		require.Equal(t, l.Bytes, l.Records+l.Blanks+l.Damaged+l.Zeros+l.Slack, name)
		for _, shares := range [][]inspect.Share{s.Topics, s.ByQueue, s.Hours, s.Sizes, s.Tags} {
			var all inspect.Share
			for _, share := range shares {
				all.Records += share.Records
				all.Bytes += share.Bytes
			}
			require.Equal(t, s.Records, all.Records, name)
			require.Equal(t, l.Records, all.Bytes, name)
		}
		want := golden.Load(t, name)
		var keys int
		for _, x := range want.IndexFiles() {
			keys += len(x.Entries)
		}
		for _, x := range s.Index {
			keys -= int(x.Keys)
		}
		require.Zero(t, keys, name)
	}
}

func TestStatSaysWhereTheBytesOfADamagedLogAre(t *testing.T) {
	first := records(0, 4)
	copy(first[2*recordSize:], make([]byte, recordSize)) // zeros in place of the third
	s := newTree()
	s.log(0, 4096, first, blank(4096, 4*recordSize))
	s.log(4096, 4096, record(4096, "hello"))
	d := mustOpen(s)
	got, err := d.Stat(t.Context(), inspect.StatOptions{}, func(inspect.Finding) {})
	require.NoError(t, err)
	end := int64(4096 + recordSize + 1)
	require.Equal(t, inspect.LogUse{
		Files: 2, Bytes: 8192, End: end, Records: 4*recordSize + 1, Blanks: 4096 - 4*recordSize, Zeros: recordSize, Slack: 8192 - end,
	}, got.Log)
}

func ExampleDir_Stat() {
	s, err := mustOpen(exampleStore()).Stat(context.Background(), inspect.StatOptions{}, func(inspect.Finding) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Topics[0].Name, s.Topics[0].Records, s.Topics[0].Bytes, s.Log.Damaged)
	// Output: TopicA 3 317 101
}
