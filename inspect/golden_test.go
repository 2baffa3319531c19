package inspect_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// collector keeps findings.
type collector struct{ all []inspect.Finding }

func (c *collector) add(f inspect.Finding) { c.all = append(c.all, f) }

// brief is each finding as "kind|file|offset".
func (c *collector) brief() []string {
	var out []string
	for _, f := range c.all {
		out = append(out, fmt.Sprintf("%s|%s|%d", f.Kind, f.File, f.Offset))
	}
	return out
}

func open(t testing.TB, dir string) *inspect.Dir {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	return d
}

// TestGoldenStores compares all that the files of all golden stores hold with what the real programs read in them
// (R-E-048, R-E-092), and proves that looking changes nothing (R-E-014).
func TestGoldenStores(t *testing.T) {
	t.Parallel()
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			dir, want := golden.Unpack(t, name), golden.Load(t, name)
			before, d := golden.Snapshot(t, dir), open(t, dir)
			t.Run("log", func(t *testing.T) { compareLog(t, d, want) })
			t.Run("queues", func(t *testing.T) { compareQueues(t, d, want) })
			t.Run("extensions", func(t *testing.T) { compareExtensions(t, d, want) })
			t.Run("index", func(t *testing.T) { compareIndex(t, d, want) })
			t.Run("transactions", func(t *testing.T) { compareTransactions(t, d, want) })
			t.Run("keys", func(t *testing.T) { compareKeys(t, d, want) })
			t.Run("identity", func(t *testing.T) { compareIdentity(t, d, want) })
			require.Equal(t, before, golden.Snapshot(t, dir))
		})
	}
}

// compareLog compares all fields of all records.
func compareLog(t *testing.T, d *inspect.Dir, want *golden.Expected) {
	var got []golden.Record
	c := &collector{}
	for r, err := range d.Log(t.Context(), inspect.LogRange{}, c.add) {
		require.NoError(t, err)
		got = append(got, goldenRecord(t, d, &r))
	}
	require.Equal(t, listed(want), got)
	damaged := slices.ContainsFunc(want.Records(), func(r golden.Record) bool { return !r.Whole() })
	short := slices.ContainsFunc(want.Segments(), func(s golden.Segment) bool { return s.Why == "bad size" })
	require.Equal(t, damaged || short, len(c.all) > 0, c.all)
}

// listed is what of the real decoder's records is to be listed: not those whose lengths do not add up although their CRC is right.
func listed(want *golden.Expected) []golden.Record {
	var out []golden.Record
	for _, r := range want.Records() {
		if r.DecodedBytes != 0 && !r.CRCWrong {
			continue
		}
		r.RecordMD5, r.PlainLength, r.PlainMD5, r.DecodedBytes = "", 0, "", 0
		if r.Properties == nil {
			r.Properties = map[string]string{}
		}
		out = append(out, r)
	}
	return out
}

func goldenRecord(t *testing.T, d *inspect.Dir, r *inspect.LogRecord) golden.Record {
	t.Helper()
	sum := md5.Sum(r.Body)
	g := golden.Record{
		File: r.File, PhysicalOffset: r.PhysicalOffset, StoreSize: r.Size, Magic: r.Magic, Topic: string(r.Topic), QueueID: r.QueueID,
		QueueOffset: r.QueueOffset, Flag: r.Flag, SysFlag: int32(r.SysFlag), BornTimestamp: r.BornTimestamp,
		StoreTimestamp: r.StoreTimestamp, ReconsumeTimes: r.ReconsumeTimes,
		PreparedTransactionOffset: r.PreparedTransactionOffset, BodyCRC: r.BodyCRC, BodyLength: int32(len(r.Body)),
		BodyMD5: hex.EncodeToString(sum[:]), MsgID: r.ID(), Properties: d.Properties(r.Properties),
		CRCWrong: r.Damaged == inspect.DamagedCRC,
	}
	var err error
	g.BornHost, err = netip.ParseAddrPort(r.BornHost.String())
	require.NoError(t, err)
	g.StoreHost, err = netip.ParseAddrPort(r.StoreHost.String())
	require.NoError(t, err)
	return g
}

// compareQueues compares all units, pre-blank fillers and batch units included.
func compareQueues(t *testing.T, d *inspect.Dir, want *golden.Expected) {
	c := &collector{}
	queues, batches := listQueues(t, d, c)
	require.Equal(t, someQueues(want.Queues()), queues)
	require.Equal(t, want.BatchQueues(), batches)
	require.Empty(t, c.all)
}

// someQueues leaves out queues without a unit: their files are all zero.
func someQueues(all []golden.Queue) []golden.Queue {
	var out []golden.Queue
	for _, q := range all {
		if len(q.Units) > 0 {
			out = append(out, q)
		}
	}
	return out
}

func listQueues(t *testing.T, d *inspect.Dir, c *collector) (queues []golden.Queue, batches []golden.BatchQueue) {
	t.Helper()
	for u, err := range d.Queues(t.Context(), inspect.QueueFilter{}, c.add) {
		require.NoError(t, err)
		if b := u.Batch; b != nil {
			if n := len(batches); n == 0 || batches[n-1].Topic != u.Topic || batches[n-1].QueueID != u.QueueID {
				batches = append(batches, golden.BatchQueue{Topic: u.Topic, QueueID: u.QueueID})
			}
			q := &batches[len(batches)-1]
			q.Units = append(q.Units, golden.BatchUnit{
				Index: u.Index, PhysicalOffset: b.PhysicalOffset, Size: b.Size, TagsCode: b.TagsCode, StoreTime: b.StoreTime,
				BaseOffset: b.BaseOffset, BatchSize: b.BatchSize, CompactedOffset: b.CompactedOffset, Reserved: b.Reserved,
			})
			continue
		}
		if n := len(queues); n == 0 || queues[n-1].Topic != u.Topic || queues[n-1].QueueID != u.QueueID {
			queues = append(queues, golden.Queue{Topic: u.Topic, QueueID: u.QueueID})
		}
		q := &queues[len(queues)-1]
		q.Units = append(q.Units, golden.Unit{Index: u.Index, PhysicalOffset: u.PhysicalOffset, Size: u.Size, TagsCode: u.TagsCode})
	}
	return queues, batches
}

// compareExtensions compares all extension units.
func compareExtensions(t *testing.T, d *inspect.Dir, want *golden.Expected) {
	c := &collector{}
	var got []golden.ExtQueue
	for u, err := range d.Extensions(t.Context(), inspect.QueueFilter{}, c.add) {
		require.NoError(t, err)
		if n := len(got); n == 0 || got[n-1].Topic != u.Topic || got[n-1].QueueID != u.QueueID {
			got = append(got, golden.ExtQueue{Topic: u.Topic, QueueID: u.QueueID})
		}
		q := &got[len(got)-1]
		bitmap := append([]byte{}, u.Bitmap...)
		if u.End {
			bitmap = nil
		}
		q.Units = append(q.Units, golden.ExtUnit{
			Offset: u.Offset, Size: u.Size, TagsCode: u.TagsCode, StoreTime: u.StoreTime, Bitmap: bitmap, End: u.End,
		})
	}
	require.Equal(t, want.ExtUnits(), got)
	require.Empty(t, c.all)
}
