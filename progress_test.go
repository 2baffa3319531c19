package rocketstore_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// Whoever reads or commits a consumer's progress does not wait for the device while it is written: here each operation of the
// device asks for it, and would wait for ever. What is committed meanwhile is in the next file.
func TestProgressIsNotHeldUpByItsWriting(t *testing.T) {
	var s *rocketstore.Store
	var armed atomic.Bool // the store's own goroutines use the device from the start
	var waits atomic.Int32
	fsys := &hooked{FS: memfs.New()}
	fsys.hooks = append(fsys.hooks, func(c *call) {
		if armed.Load() && c.op == crashfs.OpRename && strings.HasPrefix(c.name, "config/consumerOffset") {
			waits.Add(1)
			_, ok := s.ConsumerOffset("T", "CG", 0)
			require.True(t, ok)
			s.SetConsumerOffset("T", "CG", 0, 2)
		}
	})
	o := small()
	o.FS = fsys
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), &message.Message{Topic: "T", Body: []byte("one")})
	require.NoError(t, err)
	s.SetConsumerOffset("T", "CG", 0, 1)
	armed.Store(true)
	require.NoError(t, s.SaveConsumerOffsets())
	armed.Store(false)
	require.Positive(t, waits.Load())
	at, _ := s.ConsumerOffset("T", "CG", 0)
	require.Equal(t, int64(2), at)
	require.NoError(t, s.Close(t.Context()))
	o.ReadOnly = true
	s, err = rocketstore.Open("", o)
	require.NoError(t, err)
	at, _ = s.ConsumerOffset("T", "CG", 0)
	require.Equal(t, int64(2), at)
	require.NoError(t, s.Close(t.Context()))
}
