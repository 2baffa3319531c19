package commitlog_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

func segmentBytes(t testing.TB, store, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(store, filepath.FromSlash(file)))
	require.NoError(t, err)
	return b
}

func sum(b []byte) string {
	s := md5.Sum(b)
	return hex.EncodeToString(s[:])
}

// base is the physical offset that a segment's file name states.
func base(t testing.TB, file string) int64 {
	t.Helper()
	at, ok := mappedfile.ParseSegmentName(filepath.Base(file))
	require.True(t, ok)
	return at
}

// R-E-019 to R-E-023: what real brokers of three lines wrote is read field by field and written again byte for byte.
func TestEveryRecordOfEveryGoldenStore(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			e, store := golden.Load(t, name), golden.Unpack(t, name)
			left := e.Records()
			for _, segment := range e.Segments() {
				b := segmentBytes(t, store, segment.File)
				s := commitlog.NewBytesScanner(segment.File, base(t, segment.File), b)
				for len(left) > 0 && left[0].File == segment.File {
					want := left[0]
					left = left[1:]
					more := s.Next()
					require.Equal(t, want.PhysicalOffset, s.Offset())
					raw := b[want.PhysicalOffset-base(t, segment.File):][:want.StoreSize]
					if !want.Whole() {
						requireDamage(t, &want, more, s)
						continue
					}
					require.True(t, more, "%v", s.Err())
					requireRecord(t, &want, s.Record(), raw, e.Line())
					requirePropertyCRC(t, raw, e.Config().PropertyCRC)
				}
				requireEnding(t, segment, s, b)
			}
			require.Empty(t, left)
		})
	}
}

// requireDamage checks that a record which the real scan lists as damaged is reported, and that the scan can go on.
func requireDamage(t *testing.T, want *golden.Record, more bool, s *commitlog.Scanner) {
	t.Helper()
	require.False(t, more)
	require.Equal(t, commitlog.EndDamage, s.Ending())
	damage, ok := errors.AsType[*mappedfile.CorruptError](s.Err())
	require.True(t, ok)
	require.Equal(t, want.File, damage.File)
	require.Equal(t, want.PhysicalOffset-base(t, want.File), damage.Offset)
	if want.Torn() {
		require.ErrorIs(t, s.Err(), commitlog.ErrSize)
		return
	}
	require.ErrorIs(t, s.Err(), commitlog.ErrCRC)
	require.Equal(t, want.MsgID, s.Record().ID())
	require.True(t, s.Resume())
}

func requireEnding(t *testing.T, segment golden.Segment, s *commitlog.Scanner, b []byte) {
	t.Helper()
	require.False(t, s.Next(), "record at %d behind the last", s.Offset())
	switch segment.Why {
	case "blank record": // what is left is at least the header, which states how much it is (R-E-023)
		require.Equal(t, commitlog.EndBlank, s.Ending())
		require.Equal(t, segment.End, s.Offset())
		require.NoError(t, s.Err())
		left := b[segment.End-base(t, segment.File):]
		require.True(t, commitlog.IsBlank(left))
		require.Equal(t, left[:commitlog.BlankSize], commitlog.AppendBlank(nil, len(left)))
	case "zero size":
		if s.Ending() == commitlog.EndDamage { // the last record is torn, and the account counts it as one
			require.False(t, s.Resume())
			return
		}
		require.Equal(t, commitlog.EndZeros, s.Ending())
		require.Equal(t, segment.End, s.Offset())
		require.NoError(t, s.Err())
		require.False(t, s.Resume(), "nothing but zeros follows")
	default: // the file was cut inside a record
		require.Equal(t, commitlog.EndDamage, s.Ending(), segment.Why)
		require.ErrorIs(t, s.Err(), commitlog.ErrSize)
		require.Equal(t, segment.End, s.Offset())
		require.NotZero(t, len(b)%4096)
	}
}

func requireRecord(t *testing.T, want *golden.Record, r *commitlog.Record, raw []byte, line string) {
	t.Helper()
	require.Equal(t, commitlog.Record{
		Size: want.StoreSize, Magic: want.Magic, BodyCRC: want.BodyCRC, QueueID: want.QueueID, Flag: want.Flag,
		QueueOffset: want.QueueOffset, PhysicalOffset: want.PhysicalOffset, SysFlag: message.SysFlag(want.SysFlag),
		BornTimestamp: want.BornTimestamp, BornHost: message.HostFrom(want.BornHost), StoreTimestamp: want.StoreTimestamp,
		StoreHost: message.HostFrom(want.StoreHost), ReconsumeTimes: want.ReconsumeTimes,
		PreparedTransactionOffset: want.PreparedTransactionOffset, Body: r.Body, Topic: []byte(want.Topic), Properties: r.Properties,
	}, *r)
	require.Len(t, r.Body, int(want.BodyLength))
	require.Equal(t, want.BodyMD5, sum(r.Body))
	require.Equal(t, want.MsgID, r.ID())
	properties := message.Properties(r.Properties).Map()
	if line == "3.1" {
		properties = maps.Collect(message.Properties(r.Properties).Old())
	}
	require.Equal(t, want.Properties, properties)
	if want.RecordMD5 != "" {
		require.Equal(t, want.RecordMD5, sum(raw))
	}
	require.Equal(t, raw, r.AppendTo(nil), "written again")
	require.Equal(t, int(r.Size), r.EncodedSize())
	require.NoError(t, r.CheckBody())
}

// requirePropertyCRC checks that the CRC property of 5.2.0 and later is on every record of a store that has it, and on
// no other.
func requirePropertyCRC(t *testing.T, raw []byte, has bool) {
	t.Helper()
	stored, computed, ok := commitlog.PropertyCRC(raw)
	require.Equal(t, has, ok)
	if ok {
		require.Equal(t, computed, stored)
		before := len(raw) - commitlog.PropertyCRCSize
		require.Equal(t, raw, commitlog.AppendPropertyCRC(raw[:before:before]))
	}
}
