package rocketstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// A committed message that is sent back, or is dead, still carries the marks of its transaction and must come into its
// queue (protocol.md E4), whichever way it is put.
func TestMarksOfATransactionHideNothingThatIsSentBack(t *testing.T) {
	const marks = "TRAN_MSG\x01true\x02PGROUP\x01PG\x02"
	for _, dialect := range []string{"3.1", "4.9", "5.3"} {
		synctest.Test(t, func(t *testing.T) {
			o := small()
			o.FS, o.Dialect = memfs.New(), dialect
			s, err := rocketstore.Open("", o)
			require.NoError(t, err)
			for _, topic := range []string{"%RETRY%G", "%DLQ%G"} {
				for i, put := range []func() (rocketstore.PutResult, error){
					func() (rocketstore.PutResult, error) {
						return s.Put(t.Context(), &message.Message{Topic: topic, SysFlag: message.FlagPrepared, Properties: marks})
					},
					func() (rocketstore.PutResult, error) {
						return s.PutNow(t.Context(), &message.Message{Topic: topic, SysFlag: message.FlagPrepared, Properties: marks})
					},
					func() (rocketstore.PutResult, error) {
						return s.PutLoose(t.Context(), &message.Message{Topic: topic, SysFlag: message.FlagPrepared, Properties: marks})
					},
					func() (rocketstore.PutResult, error) {
						return s.Put(t.Context(), &message.Message{Topic: topic, SysFlag: message.FlagPrepared, Properties: marks + "DELAY\x011\x02"})
					},
				} {
					_, err := put()
					require.NoError(t, err, "%d", i)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				require.Len(t, bodies(t, s, topic, 0), 4, "%s %s", dialect, topic)
			}
			require.Empty(t, openSet(t, s))
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

func TestARecordIsReadAsItLies(t *testing.T) {
	o := small()
	o.FS = memfs.New()
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	at, offset := s.IndexEnd()
	require.Zero(t, at)
	require.Zero(t, offset)
	_, err = s.Put(t.Context(), &message.Message{Topic: "T", Body: []byte("no key")})
	require.NoError(t, err)
	put, err := s.Put(t.Context(), &message.Message{Topic: "T", Body: []byte("keyed"), Properties: "KEYS\x01k\x02"})
	require.NoError(t, err)
	raw, err := s.RawAt(put.PhysicalOffset)
	require.NoError(t, err)
	require.Len(t, raw, put.Size)
	r, err := commitlog.Decode(raw)
	require.NoError(t, err)
	require.Equal(t, "keyed", string(r.Body))
	for _, wrong := range []int64{-1, 1, put.PhysicalOffset + 4, put.PhysicalOffset + int64(put.Size), 1 << 60} {
		_, err := s.RawAt(wrong)
		require.ErrorIs(t, err, rocketstore.ErrNotFound, "%d", wrong)
	}
	require.NoError(t, s.WaitDispatched(t.Context(), put.PhysicalOffset+int64(put.Size)))
	at, offset = s.IndexEnd()
	require.Equal(t, put.StoreTimestamp, at)
	require.Equal(t, put.PhysicalOffset, offset)
	require.NoError(t, s.Close(t.Context()))
	_, err = s.RawAt(0)
	require.ErrorIs(t, err, rocketstore.ErrClosed)
}
