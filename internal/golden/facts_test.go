package golden_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// The tests of this file show what docs/formats.md says of files that no other package's tests show.

func bytesOf(t *testing.T, store, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(store, filepath.FromSlash(file)))
	require.NoError(t, err)
	return b
}

// byOffset finds a store's undamaged records by their place.
func byOffset(e *golden.Expected) map[int64]*golden.Record {
	m := make(map[int64]*golden.Record)
	for i, r := range e.Records() {
		if r.Whole() {
			m[r.PhysicalOffset] = &e.Records()[i]
		}
	}
	return m
}

// some are stores of each line, stopped cleanly and killed.
func some() []string {
	return []string{
		"rocketmq-3.1.4/abort-lag", "rocketmq-3.1.4/clean", "rocketmq-3.1.4/mid-transaction", "rocketmq-4.9.7/abort",
		"rocketmq-4.9.7/clean", "rocketmq-4.9.7/ipv6", "rocketmq-5.3.3/abort", "rocketmq-5.3.3/clean", "rocketmq-5.3.3/batchcq",
		"rocketmq-5.3.3/ipv6",
	}
}

func TestSegmentsAreNamedByTheirFirstByteAndHaveOneSize(t *testing.T) {
	for _, name := range golden.Names() {
		e := golden.Load(t, name)
		sizes := map[string]int64{
			"commitlog": e.Config().CommitLogFileSize, "consumequeue": e.Config().QueueFileSize,
			"consumequeue_ext": e.Config().QueueExtFileSize, "batchconsumequeue": e.Config().BatchQueueFileSize,
			"timerlog": e.Config().TimerLogFileSize, "transaction/statetable": e.Config().StateTableFileSize,
			"transaction/redolog": e.Config().RedoLogFileSize,
		}
		for _, f := range e.Files() {
			for folder, size := range sizes {
				if !strings.HasPrefix(f.Path, folder+"/") || strings.HasSuffix(name, "abort-short") {
					continue
				}
				start, ok := mappedfile.ParseSegmentName(path.Base(f.Path))
				require.True(t, ok, f.Path)
				require.Zero(t, start%size, f.Path)
				require.Equal(t, size, f.Size, f.Path)
			}
		}
	}
}

func TestBlankStandsWhereTheNextRecordsAndEightBytesDidNotFit(t *testing.T) {
	for _, name := range some() {
		e := golden.Load(t, name)
		for _, blank := range e.Blanks() {
			require.GreaterOrEqual(t, blank.Size, int32(8))
			next := slices.IndexFunc(e.Records(), func(r golden.Record) bool { return r.PhysicalOffset > blank.PhysicalOffset })
			if next < 0 {
				continue
			}
			// The records of a client batch move together; they have one store time and topic.
			size, first := int32(0), e.Records()[next]
			for _, r := range e.Records()[next:] {
				if r.StoreTimestamp != first.StoreTimestamp || r.Topic != first.Topic || r.QueueID != first.QueueID {
					break
				}
				size += r.StoreSize
			}
			require.Greater(t, size+8, blank.Size, "%s at %d", name, blank.PhysicalOffset)
		}
	}
}

func TestBlankFillerIsLeftOverBytesIn31AndZerosLater(t *testing.T) {
	for _, name := range []string{"rocketmq-3.1.4/clean", "rocketmq-4.9.7/clean", "rocketmq-5.3.3/clean"} {
		e, store := golden.Load(t, name), golden.Unpack(t, name)
		require.NotEmpty(t, e.Blanks())
		for _, blank := range e.Blanks() {
			at := blank.PhysicalOffset % e.Config().CommitLogFileSize
			filler := bytesOf(t, store, "commitlog/"+mappedfile.SegmentName(blank.PhysicalOffset-at))[at+8:]
			require.Equal(t, e.Line() == "3.1", slices.Max(filler) > 0, name)
		}
	}
}

// properties is the stored text of a record's properties.
func properties(t *testing.T, store string, r *golden.Record) string {
	t.Helper()
	start, _ := mappedfile.ParseSegmentName(path.Base(r.File))
	raw := bytesOf(t, store, r.File)[r.PhysicalOffset-start:][:r.StoreSize]
	at := 88 + int(r.BodyLength) + 1 + len(r.Topic)
	for _, flag := range []int32{16, 32} {
		if r.SysFlag&flag != 0 {
			at += 12
		}
	}
	if r.Magic == 0xDAA320AB {
		at++
	}
	n := int(binary.BigEndian.Uint16(raw[at:]))
	require.Len(t, raw[at+2:], n)
	return string(raw[at+2:])
}

func TestPropertiesEndAsTheLineThatWroteThem(t *testing.T) {
	for _, name := range []string{"rocketmq-3.1.4/clean", "rocketmq-4.9.7/clean", "rocketmq-5.3.3/clean", "rocketmq-5.3.3/ipv6"} {
		e, store := golden.Load(t, name), golden.Unpack(t, name)
		seen := 0
		for _, r := range e.Records()[:min(100, len(e.Records()))] {
			if p := properties(t, store, &r); p != "" {
				require.Equal(t, e.Line() != "4.9", strings.HasSuffix(p, "\x02"), "%s at %d", name, r.PhysicalOffset)
				seen++
			}
		}
		require.Positive(t, seen)
	}
}

func TestVersion2IsForTopicsOfMoreThan127BytesOnly(t *testing.T) {
	seen := 0
	for _, name := range some() {
		for _, r := range golden.Load(t, name).Records() {
			require.Equal(t, len(r.Topic) > 127, r.Magic == 0xDAA320AB)
			if r.Magic == 0xDAA320AB {
				seen++
			}
		}
	}
	require.Positive(t, seen)
}

// delays are the delay levels in milliseconds, from level 1 on.
func delays(t *testing.T, e *golden.Expected) []int64 {
	t.Helper()
	var all []int64
	for level := range strings.FieldsSeq(e.Config().DelayLevels) {
		if days, ok := strings.CutSuffix(level, "d"); ok {
			level = days + "h" // no level of the stores is in days
		}
		d, err := time.ParseDuration(level)
		require.NoError(t, err)
		all = append(all, d.Milliseconds())
	}
	return all
}

func TestUnitsPointAtQueuedRecordsWithTheirTagsCode(t *testing.T) {
	seen, delayed := 0, 0
	for _, name := range golden.Names("3.1.4", "4.9.7", "5.3.3") {
		if strings.Contains(name, "abort") || strings.Contains(name, "torn") || strings.Contains(name, "rebuilt") || strings.Contains(name, "continued") {
			continue // units of records that are damaged or gone, and units made anew in recovery
		}
		e := golden.Load(t, name)
		records := byOffset(e)
		for _, q := range e.Queues() {
			for _, u := range q.Units {
				r := records[u.PhysicalOffset]
				require.NotNil(t, r)
				require.Equal(t, r.StoreSize, u.Size)
				require.True(t, message.SysFlag(r.SysFlag).Queued())
				if !strings.HasPrefix(q.Topic, "%LMQ%") {
					require.Equal(t, r.Topic, q.Topic)
					require.Equal(t, r.QueueID, q.QueueID)
					require.Equal(t, r.QueueOffset, u.Index)
				}
				seen++
				level, isDelayed := r.Properties["DELAY"]
				switch {
				case e.Config().QueueExt:
					require.Less(t, u.TagsCode, int64(-1)<<31, "the address of an extension unit")
				case q.Topic == "SCHEDULE_TOPIC_XXXX" && isDelayed:
					n, err := strconv.Atoi(level)
					require.NoError(t, err)
					due := r.StoreTimestamp + delays(t, e)[min(n, len(delays(t, e)))-1]
					if e.Line() == "3.1" { // computed before the store time is taken
						require.InDelta(t, due, u.TagsCode, 3)
					} else {
						require.Equal(t, due, u.TagsCode)
					}
					delayed++
				default:
					require.Equal(t, message.TagsCode(r.Properties["TAGS"]), u.TagsCode, "%s %s/%d %d", name, q.Topic, q.QueueID, u.Index)
				}
			}
		}
	}
	require.Greater(t, seen, 1000)
	require.Greater(t, delayed, 10)
}

func TestExtensionUnitsAreAtTheAddressInTheQueue(t *testing.T) {
	for _, name := range []string{"rocketmq-4.9.7/ext", "rocketmq-5.3.3/ext"} {
		e := golden.Load(t, name)
		records := byOffset(e)
		for i, q := range e.Queues() {
			ext := e.ExtUnits()[i]
			require.Equal(t, q.Topic, ext.Topic)
			require.Equal(t, q.QueueID, ext.QueueID)
			for _, u := range q.Units {
				at := slices.IndexFunc(ext.Units, func(x golden.ExtUnit) bool { return x.Offset+(-1<<63) == u.TagsCode })
				require.GreaterOrEqual(t, at, 0)
				r := records[u.PhysicalOffset]
				require.Equal(t, message.TagsCode(r.Properties["TAGS"]), ext.Units[at].TagsCode)
				require.Equal(t, r.StoreTimestamp, ext.Units[at].StoreTime)
				require.EqualValues(t, 20+len(ext.Units[at].Bitmap), ext.Units[at].Size)
			}
		}
	}
}

func TestInnerBatchTakesAsManyQueueOffsetsAsItHasMessages(t *testing.T) {
	e := golden.Load(t, "rocketmq-5.3.3/batchcq")
	records := byOffset(e)
	batches := 0
	for _, q := range e.BatchQueues() {
		next := int64(0)
		for _, u := range q.Units {
			r := records[u.PhysicalOffset]
			require.Equal(t, next, u.BaseOffset)
			require.Equal(t, next, r.QueueOffset)
			require.Equal(t, r.StoreTimestamp, u.StoreTime)
			require.EqualValues(t, -1, u.CompactedOffset)
			if message.SysFlag(r.SysFlag).Has(message.FlagInnerBatch) {
				require.Equal(t, strconv.Itoa(int(u.BatchSize)), r.Properties["INNER_NUM"])
				require.Equal(t, strconv.FormatInt(next, 10), r.Properties["INNER_BASE"])
				batches++
			} else {
				require.EqualValues(t, 1, u.BatchSize)
			}
			next += int64(u.BatchSize)
		}
	}
	require.Positive(t, batches)
}

func TestLightQueuesShareTheRecord(t *testing.T) {
	for _, name := range []string{"rocketmq-4.9.7/lmq", "rocketmq-5.3.3/lmq"} {
		e := golden.Load(t, name)
		seen := 0
		for _, r := range e.Records() {
			queues, offsets := r.Properties["INNER_MULTI_DISPATCH"], strings.Split(r.Properties["INNER_MULTI_QUEUE_OFFSET"], ",")
			if queues == "" {
				continue
			}
			for i, topic := range strings.Split(queues, ",") {
				at := slices.IndexFunc(e.Queues(), func(q golden.Queue) bool { return q.Topic == topic && q.QueueID == 0 })
				require.GreaterOrEqual(t, at, 0)
				index, err := strconv.Atoi(offsets[i])
				require.NoError(t, err)
				require.Equal(t, r.PhysicalOffset, e.Queues()[at].Units[index].PhysicalOffset)
				seen++
			}
		}
		require.Positive(t, seen)
	}
}

func TestTransactionsOf31InAllFiveFiles(t *testing.T) {
	for _, name := range []string{"clean", "abort", "abort-oneredo", "mid-transaction"} {
		e := golden.Load(t, "rocketmq-3.1.4/"+name)
		var redo []golden.Unit
		prepared := int64(0)
		for _, r := range e.Records() {
			u := golden.Unit{Index: int64(len(redo)), PhysicalOffset: r.PhysicalOffset, Size: r.StoreSize, TagsCode: r.PreparedTransactionOffset}
			switch message.SysFlag(r.SysFlag).Transaction() {
			case 0:
				continue
			case message.FlagPrepared:
				require.Equal(t, prepared, r.QueueOffset, "the number in the state table")
				state := e.StateTable()[prepared]
				require.Equal(t, r.PhysicalOffset, state.PhysicalOffset)
				require.Equal(t, r.StoreSize, state.Size)
				require.EqualValues(t, r.StoreTimestamp/1000, state.StoredAt)
				require.Equal(t, message.HashString(r.Properties["PGROUP"]), state.GroupHash)
				u.TagsCode = -1
				prepared++
			case message.FlagRollback:
				require.Zero(t, r.BodyLength)
				require.Zero(t, r.BodyCRC)
				require.Equal(t, r.PreparedTransactionOffset, e.StateTable()[r.QueueOffset].PhysicalOffset)
			}
			redo = append(redo, u)
		}
		require.Len(t, e.StateTable(), int(prepared))
		require.Equal(t, e.RedoLog(), redo)
	}
}

func TestCheckpointHasFiveTimesAndZeros(t *testing.T) {
	for _, name := range some() {
		e := golden.Load(t, name)
		b, c := bytesOf(t, golden.Unpack(t, name), "checkpoint"), e.Checkpoint()
		require.Len(t, b, 4096)
		for i, want := range []int64{c.PhysicTimestamp, c.LogicsTimestamp, c.IndexTimestamp, c.MasterFlushedOffset, c.ConfirmOffset} {
			require.Equal(t, want, int64(binary.BigEndian.Uint64(b[8*i:])), "%s: field %d", name, i)
		}
		require.Equal(t, make([]byte, 4096-40), b[40:])
	}
}

func TestAbortAndLockOfEachLine(t *testing.T) {
	for _, name := range golden.Names() {
		e := golden.Load(t, name)
		has := func(file string) bool {
			return slices.ContainsFunc(e.Files(), func(f golden.FileInfo) bool { return f.Path == file })
		}
		require.Equal(t, e.Abort(), has("abort"))
		require.Equal(t, e.Line() != "3.1", has("lock"))
		require.Equal(t, e.Line() == "5.3", has("abort.bak"))
	}
	for _, name := range some() {
		e, store := golden.Load(t, name), golden.Unpack(t, name)
		if e.Line() != "3.1" {
			require.Equal(t, "lock", string(bytesOf(t, store, "lock")))
		}
		if e.Abort() && e.Line() == "5.3" {
			require.Regexp(t, "^[0-9]+$", string(bytesOf(t, store, "abort")))
		} else if e.Abort() {
			require.Empty(t, bytesOf(t, store, "abort"))
		}
	}
}

func TestTimerFilesOf53(t *testing.T) {
	const name = "rocketmq-5.3.3/timer"
	var raw struct {
		Timer struct {
			WheelSlots []struct {
				SlotIndex, TimeMs, FirstPos, LastPos int64
				Num                                  int32
			}
			LogRecords []struct{ Pos, Size, PrevPos, OffsetPy, SizePy int64 }
		}
	}
	e, store := golden.Load(t, name), golden.Unpack(t, name)
	require.NoError(t, json.Unmarshal(e.Raw("raw"), &raw))
	wheel := bytesOf(t, store, "timerwheel")
	require.Len(t, wheel, 7*86400*2*32)
	for _, s := range raw.Timer.WheelSlots {
		slot := wheel[32*s.SlotIndex:]
		require.Equal(t, s.SlotIndex, s.TimeMs/1000%(7*86400*2))
		require.Equal(t, s.TimeMs/1000, int64(binary.BigEndian.Uint64(slot)))
		require.Equal(t, s.FirstPos, int64(binary.BigEndian.Uint64(slot[8:])))
		require.Equal(t, s.LastPos, int64(binary.BigEndian.Uint64(slot[16:])))
		require.Equal(t, s.Num, int32(binary.BigEndian.Uint32(slot[24:])))
	}
	records := byOffset(e)
	for _, u := range raw.Timer.LogRecords {
		at := u.Pos % e.Config().TimerLogFileSize
		unit := bytesOf(t, store, "timerlog/"+mappedfile.SegmentName(u.Pos-at))[at:]
		require.EqualValues(t, u.Size, binary.BigEndian.Uint32(unit))
		if u.Size != 52 { // less than 52 + 16 bytes are left: the mark that ends a file
			require.Equal(t, e.Config().TimerLogFileSize-at, u.Size)
			require.Equal(t, uint32(0xCBD43194), binary.BigEndian.Uint32(unit[12:]))
			continue
		}
		require.Equal(t, u.PrevPos, int64(binary.BigEndian.Uint64(unit[4:])))
		require.Equal(t, u.OffsetPy, int64(binary.BigEndian.Uint64(unit[28:])))
		require.EqualValues(t, u.SizePy, binary.BigEndian.Uint32(unit[36:]))
		require.Equal(t, "rmq_sys_wheel_timer", records[u.OffsetPy].Topic)
	}
}
