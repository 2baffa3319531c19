package client_test

import (
	"bytes"
	"compress/zlib"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/message"
)

// recordOf is a stored message with the body "body".
func recordOf(t testing.TB, properties ...string) []byte {
	t.Helper()
	p, err := message.NewProperties(properties...)
	require.NoError(t, err)
	r := commitlog.Record{
		Magic: commitlog.MagicV1, QueueID: 3, QueueOffset: 7, PhysicalOffset: 4145, BornTimestamp: 11, StoreTimestamp: 12, Flag: 5,
		BornHost: host(t, "127.0.0.1:5"), StoreHost: host(t, "127.0.0.1:10911"), Topic: []byte("T"), Body: []byte("body"),
		BodyCRC: message.CRC([]byte("body")), Properties: []byte(p),
	}
	return r.AppendTo(nil)
}

func host(t testing.TB, s string) message.Host {
	t.Helper()
	h, err := message.ParseHost(s)
	require.NoError(t, err)
	return h
}

func TestRecordsAreReadOneAfterAnother(t *testing.T) { // R-D-013, R-D-015, R-D-022
	one := recordOf(t, "UNIQ_KEY", "U", "TAGS", "A")
	two := commitlog.Record{
		Magic: commitlog.MagicV2, SysFlag: message.FlagStoreHostIPv6 | message.FlagBornHostIPv6, BornHost: host(t, "[::1]:5"), StoreHost: host(t, "[::1]:6"),
		Topic: bytes.Repeat([]byte("t"), 200),
	}
	var got []*message.Received
	for m, err := range client.DecodeRecords(two.AppendTo(slices.Clone(one)), 1<<20) {
		require.NoError(t, err)
		got = append(got, m)
	}
	require.Len(t, got, 2)
	require.Equal(t, "U", got[0].ID())
	require.Equal(t, "7F00000100002A9F0000000000001031", got[0].OffsetID())
	require.Equal(t, "A", got[0].Tag())
	require.EqualValues(t, 7, got[0].QueueOffset)
	require.EqualValues(t, len(one), got[0].StoreSize)
	require.Len(t, got[1].Topic, 200)
	require.Equal(t, got[1].OffsetID(), got[1].ID())
}

func TestARecordWithAWrongBodyDoesNotHideTheNext(t *testing.T) {
	bad := recordOf(t)
	bad[90]++
	var ids []int64
	var errs []error
	for m, err := range client.DecodeRecords(append(bad, recordOf(t)...), 1<<20) {
		ids, errs = append(ids, m.QueueOffset), append(errs, err)
	}
	require.Equal(t, []int64{7, 7}, ids)
	require.ErrorIs(t, errs[0], client.ErrRecord)
	require.NoError(t, errs[1])
}

func FuzzDecodeRecords(f *testing.F) { // bytes of a broker: the same as what the store's own decoder makes of them
	f.Add(recordOf(f, "TAGS", "A"))
	f.Add(append(recordOf(f), recordOf(f)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		for m, err := range client.DecodeRecords(b, 1<<16) {
			want, wantErr := commitlog.Decode(b[at:])
			if m == nil {
				require.ErrorIs(t, err, client.ErrRecord)
				require.Error(t, wantErr)
				return
			}
			require.NoError(t, wantErr)
			require.Equal(t, want.Size, m.StoreSize)
			require.Equal(t, string(want.Topic), m.Topic)
			require.Equal(t, want.PhysicalOffset, m.PhysicalOffset)
			require.Equal(t, string(want.Properties), string(m.Properties))
			at += int(want.Size)
		}
		require.Equal(t, len(b), at)
	})
}

// compressed is text in the forms that clients write.
func compressed(t testing.TB, text string) map[message.SysFlag][]byte {
	t.Helper()
	var deflated, framed, z bytes.Buffer
	zw := zlib.NewWriter(&deflated)
	lw := lz4.NewWriter(&framed)
	sw, err := zstd.NewWriter(&z)
	require.NoError(t, err)
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{zw, lw, sw} {
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return map[message.SysFlag][]byte{
		message.FlagCompressed:                    deflated.Bytes(),
		message.FlagCompressed | message.FlagZLIB: deflated.Bytes(),
		message.FlagCompressed | message.FlagLZ4:  framed.Bytes(),
		message.FlagCompressed | message.FlagZSTD: z.Bytes(),
	}
}

func TestBodiesAreDecompressedUpToALimit(t *testing.T) { // R-D-033
	text := string(bytes.Repeat([]byte("text "), 1000))
	for flag, body := range compressed(t, text) {
		plain, err := client.Decompress(body, flag, 5000)
		require.NoError(t, err, flag.Compression())
		require.Equal(t, text, string(plain))
		_, err = client.Decompress(body, flag, 4999)
		require.ErrorIs(t, err, client.ErrCompressed, flag.Compression())
		_, err = client.Decompress(body[:len(body)/2], flag, 5000)
		require.ErrorIs(t, err, client.ErrCompressed, flag.Compression())
	}
	_, err := client.Decompress(nil, message.FlagCompressed|0x700, 10)
	require.ErrorIs(t, err, client.ErrCompressed)
	plain, err := client.Decompress([]byte("x"), 0, 0)
	require.NoError(t, err)
	require.Equal(t, "x", string(plain))
}

func FuzzDecompress(f *testing.F) {
	for flag, body := range compressed(f, "some text") {
		f.Add(body, int32(flag))
	}
	f.Fuzz(func(t *testing.T, b []byte, flag int32) {
		plain, err := client.Decompress(b, message.SysFlag(flag), 1<<16)
		if err == nil && message.SysFlag(flag).Has(message.FlagCompressed) {
			require.LessOrEqual(t, len(plain), 1<<16)
		}
	})
}

func TestUniqueIDsNeverRepeat(t *testing.T) { // R-D-023
	each := 1_000_000 / 16
	if !testing.Short() {
		each = 10_000_000 / 16
	}
	ids := client.NewIDs(netip.MustParseAddr("127.0.0.1"))
	first := ids.Next()
	require.Regexp(t, `^7F000001[0-9A-F]{24}$`, first)
	var all sync.WaitGroup
	made := make([][]uint64, 16) // the last 8 bytes hold time and counter: the rest is constant within a month
	for i := range made {
		all.Go(func() {
			for range each {
				made[i] = append(made[i], tail(ids.Next()))
			}
		})
	}
	all.Wait()
	joined := slices.Concat(made...)
	slices.Sort(joined)
	require.Len(t, slices.Compact(joined), 16*each)
}

// tail is the number that the last 16 hex digits hold.
func tail(id string) (n uint64) {
	for _, d := range []byte(id[len(id)-16:]) {
		n = n<<4 | uint64(d&15)
		if d > '9' {
			n += 9
		}
	}
	return n
}

func TestUniqueIDsDifferAcrossMonths(t *testing.T) { // R-D-023
	synctest.Test(t, func(t *testing.T) {
		ids := client.NewIDs(netip.MustParseAddr("fe80::1"))
		seen := map[string]bool{}
		begin := time.Now()
		for _, at := range []time.Time{begin, begin.AddDate(0, 1, 0), begin.AddDate(0, 2, 0)} {
			time.Sleep(time.Until(at))
			for range 70_000 { // the counter alone does not tell them apart
				seen[ids.Next()] = true
			}
		}
		require.Len(t, seen, 3*70_000)
		require.Len(t, ids.Next(), 56)
	})
}
