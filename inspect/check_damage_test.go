package inspect_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// Places in the golden stores that the damages are done to.
const (
	log0    = "commitlog/00000000000000000000"
	log1    = "commitlog/00000000000000262144"
	log2    = "commitlog/00000000000000524288"
	normal  = "consumequeue/GoldenNormal/0/00000000000000000000"
	normal2 = "consumequeue/GoldenNormal/0/00000000000000001000"
	delayed = "consumequeue/SCHEDULE_TOPIC_XXXX/0/00000000000000000000"
	idx1    = "index/20261129203500354"
	idx2    = "index/20261129203501297"
	entries = 40 + 4*100 // of an index file of 4.9.7
	states  = "transaction/statetable/00000000000000000000"
	redo    = "transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0/00000000000000000000"
	batch   = "batchconsumequeue/GoldenBcq/0/00000000000000000000"
	extFile = "consumequeue_ext/GoldenExt/0/00000000000000000000"
	extUnit = "consumequeue/GoldenExt/0/00000000000000000000"
)

// harm does damage to a store directory.
type harm struct {
	testing.TB
	dir string
}

func (h *harm) path(file string) string { return filepath.Join(h.dir, file) }

// change has f change a file's bytes from off on.
func (h *harm) change(file string, off int64, f func(b []byte)) {
	h.Helper()
	b, err := os.ReadFile(h.path(file))
	require.NoError(h, err)
	f(b[off:])
	require.NoError(h, os.WriteFile(h.path(file), b, 0o644))
}

func (h *harm) xor(file string, off int64) { h.change(file, off, func(b []byte) { b[0] ^= 0x55 }) }
func (h *harm) put32(file string, off int64, v uint32) {
	h.change(file, off, func(b []byte) { binary.BigEndian.PutUint32(b, v) })
}

func (h *harm) put64(file string, off int64, v uint64) {
	h.change(file, off, func(b []byte) { binary.BigEndian.PutUint64(b, v) })
}

func (h *harm) zero(file string, off, n int64) { h.change(file, off, func(b []byte) { clear(b[:n]) }) }

func (h *harm) write(file, text string) {
	require.NoError(h, os.MkdirAll(filepath.Dir(h.path(file)), 0o755))
	require.NoError(h, os.WriteFile(h.path(file), []byte(text), 0o644))
}

func (h *harm) read(file string) string {
	b, err := os.ReadFile(h.path(file))
	require.NoError(h, err)
	return string(b)
}

func (h *harm) cut(file string, n int64) { require.NoError(h, os.Truncate(h.path(file), n)) }
func (h *harm) remove(file string)       { require.NoError(h, os.RemoveAll(h.path(file))) }

// record is the physical offset of a queue's record.
func (h *harm) record(file string, index int64) int64 {
	var off uint64
	h.change(file, index*20, func(b []byte) { off = binary.BigEndian.Uint64(b) })
	return int64(off)
}

// swap swaps two stretches of n bytes.
func (h *harm) swap(file string, a, b, n int64) {
	h.change(file, 0, func(x []byte) {
		t := append([]byte{}, x[a:a+n]...)
		copy(x[a:], x[b:b+n])
		copy(x[b:], t)
	})
}

// planted is one damage and what must be found.
type planted struct {
	name   string
	do     func(h *harm)
	kind   inspect.Kind
	file   string
	offset int64
}

const (
	store31  = "rocketmq-3.1.4/clean"
	store49  = "rocketmq-4.9.7/clean"
	storeBCQ = "rocketmq-5.3.3/batchcq"
	storeExt = "rocketmq-5.3.3/ext"
	storeCRC = "rocketmq-5.3.3/crc"
)

func damages() map[string][]planted {
	return map[string][]planted{
		store49: append(append(append(logDamages(), queueDamages()...), indexDamages()...), otherDamages()...),
		store31: transactionDamages(),
		storeBCQ: {
			{"batch unit, place of the record", func(h *harm) { h.put64(batch, 46, 7) }, inspect.WrongUnit, batch, 46},
			{"batch unit, size", func(h *harm) { h.put32(batch, 46+8, 7) }, inspect.WrongUnit, batch, 46},
			{"batch unit, base offset", func(h *harm) { h.put64(batch, 46+28, 77) }, inspect.WrongUnit, batch, 46},
			{"batch unit, number of messages", func(h *harm) { h.xor(batch, 46+37) }, inspect.WrongUnit, batch, 46},
			{"batch unit zeroed", func(h *harm) { h.zero(batch, 92, 46) }, inspect.MissingUnits, batch, 138},
		},
		storeExt: {
			{"extension unit, tags code", func(h *harm) { h.put64(extFile, 2, 12345) }, inspect.WrongExt, extFile, 0},
			{"extension unit, store time", func(h *harm) { h.xor(extFile, 10) }, inspect.WrongExt, extFile, 0},
			{"address of an extension unit", func(h *harm) { h.put64(extUnit, 12, 1<<63|5000) }, inspect.WrongExt, extUnit, 12},
			{"extension unit, size", func(h *harm) { h.xor(extFile, 0) }, inspect.BadUnit, extFile, 0},
		},
		storeCRC: {
			{"property of a record with a CRC over all of it", func(h *harm) { h.change(log0, 0, func(b []byte) { b[binary.BigEndian.Uint32(b)-40] ^= 1 }) }, inspect.BadCRC, log0, 0},
		},
	}
}

func logDamages() []planted {
	return []planted{
		{"body", func(h *harm) { h.xor(log0, h.record(normal, 3)+90) }, inspect.BadCRC, log0, -3},
		{"magic", func(h *harm) { h.xor(log0, h.record(normal, 3)+4) }, inspect.BadMagic, log0, -3},
		{"size", func(h *harm) { h.put32(log0, h.record(normal, 3), 50) }, inspect.BadSize, log0, -3},
		{"place that the record says", func(h *harm) { h.put64(log0, h.record(normal, 3)+28, 99) }, inspect.BadPlace, log0, -3},
		{"start of a record zeroed", func(h *harm) { h.zero(log0, h.record(normal, 3), 100) }, inspect.Zeros, log0, -3},
		{"queue offset in a record", func(h *harm) { h.put64(log0, h.record(normal, 3)+20, 2) }, inspect.OffsetTwice, log0, -3},
		{"queue offset that is far off", func(h *harm) { h.put64(log0, h.record(normal, 3)+20, 1<<40) }, inspect.WrongField, log0, -3},
		{"queue offset below 0", func(h *harm) { h.put64(log0, h.record(normal, 3)+20, 1<<63) }, inspect.WrongField, log0, -3},
		{"queue id below 0", func(h *harm) { h.put32(log0, h.record(normal, 3)+12, 1<<31) }, inspect.WrongField, log0, -3},
		{"system flag of no line", func(h *harm) { h.put32(log0, h.record(normal, 3)+36, 1<<26) }, inspect.WrongField, log0, -3},
		{"store time below 0", func(h *harm) { h.put64(log0, h.record(normal, 3)+56, 1<<63) }, inspect.WrongField, log0, -3},
		{"port of the born host", func(h *harm) { h.put32(log0, h.record(normal, 3)+52, 1<<30) }, inspect.WrongField, log0, -3},
		{"port of the store host", func(h *harm) { h.put32(log0, h.record(normal, 3)+68, 1<<31) }, inspect.WrongField, log0, -3},
		{"times consumed again", func(h *harm) { h.put32(log0, h.record(normal, 3)+72, 1<<31) }, inspect.WrongField, log0, -3},
		{"place of the prepared message", func(h *harm) { h.put64(log0, h.record(normal, 3)+76, 1<<63) }, inspect.WrongField, log0, -3},
		{"segment in the middle removed", func(h *harm) { h.remove(log1) }, inspect.Gap, log2, 0},
		{"segment in the middle cut", func(h *harm) { h.cut(log1, 200_000) }, inspect.WrongSize, log1, 0},
		{"last segment cut", func(h *harm) { h.cut(log2, 30_000) }, inspect.ShortSegment, log2, 30_000},
		{"last segment empty", func(h *harm) { h.cut(log2, 0) }, inspect.EmptySegment, log2, 0},
		{"file with another name", func(h *harm) { h.write("commitlog/copy", "") }, inspect.ForeignFile, "commitlog/copy", 0},
	}
}

func queueDamages() []planted {
	return []planted{
		{"unit, place", func(h *harm) { h.put64(normal, 60, 12345) }, inspect.WrongUnit, normal, 60},
		{"unit, size", func(h *harm) { h.xor(normal, 60+11) }, inspect.WrongUnit, normal, 60},
		{"unit, tags code", func(h *harm) { h.xor(normal, 60+19) }, inspect.WrongUnit, normal, 72},
		{"unit zeroed", func(h *harm) { h.zero(normal, 60, 20) }, inspect.Zeros, normal, 60},
		{"impossible unit", func(h *harm) { h.put64(normal, 60, 1<<63) }, inspect.BadUnit, normal, 60},
		{"filler over a unit", func(h *harm) { h.zero(normal, 60, 20); h.put32(normal, 68, 0x7FFFFFFF) }, inspect.MissingUnits, normal, 60},
		{"two units swapped", func(h *harm) { h.swap(normal, 60, 80, 20) }, inspect.WrongUnit, normal, 80},
		{"last units zeroed", func(h *harm) { h.zero(normal2, 16*20, 40) }, inspect.QueueBehind, normal2, 320},
		{"unit behind the end of the log", func(h *harm) { h.put64(normal2, 360, 600_000); h.put32(normal2, 368, 300) }, inspect.UnitBeyond, normal2, 360},
		{"unit into a record", func(h *harm) { h.put64(normal2, 360, 5); h.put32(normal2, 368, 300) }, inspect.WrongUnit, normal2, 360},
		{"unit there twice", func(h *harm) { h.change(normal2, 340, func(b []byte) { copy(b[20:40], b[:20]) }) }, inspect.WrongUnit, normal2, 360},
		{"queue removed", func(h *harm) { h.remove("consumequeue/GoldenTx/0") }, inspect.MissingQueue, "consumequeue/GoldenTx/0", 0},
		{"first file of a queue removed", func(h *harm) { h.remove(normal) }, inspect.MissingUnits, "consumequeue/GoldenNormal/0", 0},
		{"file of a queue in the middle removed", func(h *harm) { h.remove("consumequeue/GoldenNormal/1/00000000000000001000") }, inspect.Gap, "consumequeue/GoldenNormal/1/00000000000000002000", 0},
		{"file of a queue cut", func(h *harm) { h.cut(normal, 990) }, inspect.WrongSize, normal, 0},
		{"folder that is no queue", func(h *harm) { h.write("consumequeue/GoldenTx/x/f", "") }, inspect.ForeignFile, "consumequeue/GoldenTx/x", 0},
		{"delivery time", func(h *harm) { h.put64(delayed, 12, 100) }, inspect.WrongTime, delayed, 12},
		{"delivery time off by a little", func(h *harm) { h.xor(delayed, 20+19) }, inspect.WrongTime, delayed, 32},
	}
}

func indexDamages() []planted {
	entry := func(n, at int64) int64 { return entries + 20*n + at }
	return []planted{
		{"key hash", func(h *harm) { h.xor(idx1, entry(9, 3)) }, inspect.WrongEntry, idx1, entry(9, 0)},
		{"entry, place", func(h *harm) { h.xor(idx1, entry(9, 11)) }, inspect.WrongEntry, idx1, entry(9, 0)},
		{"entry, far place", func(h *harm) { h.put64(idx1, entry(9, 4), 1<<40) }, inspect.EntryBeyond, idx1, entry(9, 0)},
		{"entry, time", func(h *harm) { h.put32(idx1, entry(9, 12), 4711) }, inspect.WrongEntry, idx1, entry(9, 12)},
		{"entry, one before", func(h *harm) { h.put32(idx1, entry(200, 16), 150) }, inspect.BadIndex, idx1, entry(200, 16)},
		{"entry zeroed", func(h *harm) { h.zero(idx1, entry(200, 0), 20) }, inspect.WrongEntry, idx1, entry(200, 0)},
		{"slot", func(h *harm) {
			h.change(idx1, 40+4*5, func(b []byte) { binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)^3) })
		}, inspect.BadIndex, idx1, 60},
		{"slot zeroed", func(h *harm) { h.zero(idx1, 40+4*5, 4) }, inspect.BadIndex, idx1, 60},
		{"header, begin time", func(h *harm) { h.xor(idx1, 7) }, inspect.WrongHeader, idx1, 0},
		{"header, end time", func(h *harm) { h.xor(idx1, 15) }, inspect.WrongHeader, idx1, 8},
		{"header, begin offset", func(h *harm) { h.xor(idx1, 23) }, inspect.WrongHeader, idx1, 16},
		{"header, end offset", func(h *harm) { h.xor(idx1, 31) }, inspect.WrongHeader, idx1, 24},
		{"header, slot count", func(h *harm) { h.put32(idx1, 32, 3) }, inspect.WrongHeader, idx1, 32},
		{"header, index count", func(h *harm) { h.put32(idx2, 36, 300) }, inspect.WrongHeader, idx2, 36},
		{"slot with a number beyond the file", func(h *harm) { h.put32(idx1, 60, 1<<31-1) }, inspect.BadIndex, idx1, 60},
		{"slot with the number of no entry", func(h *harm) { h.put32(idx2, 60, 390) }, inspect.BadIndex, idx2, 60},
		{"header and slots zeroed", func(h *harm) { h.zero(idx2, 0, 460) }, inspect.WrongHeader, idx2, 0},
		{"file there twice", func(h *harm) { h.write("index/20261129203501298", h.read(idx2)) }, inspect.WrongHeader, "index/20261129203501298", 16},
		{"first file removed", func(h *harm) { h.remove(idx1) }, inspect.MissingKeys, idx2, 0},
		{"last file removed", func(h *harm) { h.remove(idx2) }, inspect.IndexBehind, "index", 0},
		{"file cut", func(h *harm) { h.cut(idx1, 8000) }, inspect.WrongSize, idx1, 0},
		{"name of another sort", func(h *harm) { h.write("index/2026", "") }, inspect.ForeignFile, "index/2026", 0},
	}
}

func otherDamages() []planted {
	const half, op = "consumequeue/RMQ_SYS_TRANS_HALF_TOPIC/0/00000000000000000000", "consumequeue/RMQ_SYS_TRANS_OP_HALF_TOPIC/0/00000000000000000000"
	return []planted{
		{"checkpoint, log", func(h *harm) { h.put64("checkpoint", 0, 1<<42) }, inspect.CheckpointBeyond, "checkpoint", 0},
		{"checkpoint, queues", func(h *harm) { h.put64("checkpoint", 8, 1<<42) }, inspect.CheckpointBeyond, "checkpoint", 8},
		{"checkpoint, index", func(h *harm) { h.put64("checkpoint", 16, 1<<63) }, inspect.CheckpointBeyond, "checkpoint", 16},
		{"checkpoint empty", func(h *harm) { h.cut("checkpoint", 0) }, inspect.BadFile, "checkpoint", 0},
		{"checkpoint cut", func(h *harm) { h.cut("checkpoint", 512) }, inspect.WrongSize, "checkpoint", 512},
		{"topics cut, no backup", func(h *harm) { h.cut("config/topics.json", 100); h.remove("config/topics.json.bak") }, inspect.BadFile, "config/topics.json", 100},
		{"offsets of NUL, with backup", func(h *harm) { h.write("config/consumerOffset.json", "\x00\x00\x00") }, inspect.BackupInUse, "config/consumerOffset.json", 0},
		{"a group's offset", func(h *harm) { h.write("config/consumerOffset.json", `{"offsetTable":{"GoldenTx@g":{0:99}}}`) }, inspect.OffsetBeyond, "config/consumerOffset.json", 16},
		{"progress of a delay level", func(h *harm) { h.write("config/delayOffset.json", `{"offsetTable":{1:99}}`) }, inspect.OffsetBeyond, "config/delayOffset.json", 16},
		{"file under config for another one", func(h *harm) { h.write("config/topics.json", h.read("config/consumerOffset.json")) }, inspect.BadFile, "config/topics.json", 0},
		{"filter file cut", func(h *harm) { h.write("config/consumerFilter.json", `{"filterDataByTopic":{`) }, inspect.BadFile, "config/consumerFilter.json", 0},
		{"filter file of NUL", func(h *harm) { h.write("config/consumerFilter.json", "\x00") }, inspect.BadFile, "config/consumerFilter.json", 0},
		{"half message without its topic", func(h *harm) { h.rename(h.record(half, 2), "REAL_TOPIC", "REAL_topic") }, inspect.Orphan, log2, -3},
		{"op message of no half message", func(h *harm) { h.body(h.record(op, 0), "9") }, inspect.BadCRC, log2, -3},
	}
}

// segment splits a physical offset of the 4.9.7 store.
func (h *harm) segment(off int64) (string, int64) {
	return fmt.Sprintf("commitlog/%020d", off-off%262144), off % 262144
}

// rename changes a word in a record.
func (h *harm) rename(off int64, from, to string) {
	file, at := h.segment(off)
	h.change(file, at, func(b []byte) {
		for i := range int(binary.BigEndian.Uint32(b)) - len(from) {
			if string(b[i:i+len(from)]) == from {
				copy(b[i:], to)
			}
		}
	})
}

// body changes the first byte of a record's body.
func (h *harm) body(off int64, to string) {
	file, at := h.segment(off)
	h.change(file, at+88, func(b []byte) { copy(b, to) })
}

func transactionDamages() []planted {
	return []planted{
		{"state record, place", func(h *harm) { h.put64(states, 72, 5) }, inspect.WrongState, states, 72},
		{"state record, far place", func(h *harm) { h.put64(states, 72, 1<<40) }, inspect.Orphan, states, 72},
		{"state record, size", func(h *harm) { h.xor(states, 72+11) }, inspect.WrongState, states, 80},
		{"state record, time", func(h *harm) { h.xor(states, 72+13) }, inspect.WrongState, states, 84},
		{"state record, sign of the time", func(h *harm) { h.change(states, 72+12, func(b []byte) { b[0] ^= 0x80 }) }, inspect.WrongState, states, 84},
		{"index header, sign of the begin time", func(h *harm) { h.change("index/20261129202851238", 0, func(b []byte) { b[0] ^= 0x80 }) }, inspect.WrongHeader, "index/20261129202851238", 0},
		{"state record, group", func(h *harm) { h.xor(states, 72+19) }, inspect.WrongState, states, 88},
		{"committed, says prepared", func(h *harm) { h.put32(states, 72+20, 4) }, inspect.StateBehind, states, 92},
		{"no state", func(h *harm) { h.put32(states, 72+20, 7) }, inspect.BadUnit, states, 72},
		{"prepared, says committed", func(h *harm) { h.put32(states, 48+20, 8) }, inspect.StateBehind, states, 68},
		{"state records swapped", func(h *harm) { h.swap(states, 72, 96, 24) }, inspect.Renumbered, states, 72},
		{"state record zeroed", func(h *harm) { h.zero(states, 72, 24) }, inspect.Zeros, states, 72},
		{"state record of an open transaction zeroed", func(h *harm) { h.zero(states, 48, 24) }, inspect.MissingState, log0, 4672},
		{"redo unit, place", func(h *harm) { h.xor(redo, 60+7) }, inspect.WrongRedo, redo, 60},
		{"redo unit, size", func(h *harm) { h.xor(redo, 60+11) }, inspect.WrongRedo, redo, 68},
		{"redo unit, transaction", func(h *harm) { h.put64(redo, 60+12, 1) }, inspect.WrongRedo, redo, 72},
		{"redo unit zeroed", func(h *harm) { h.zero(redo, 60, 20) }, inspect.MissingRedo, redo, 80},
		{"redo unit behind the end of the log", func(h *harm) { h.put64(redo, 60, 1<<40) }, inspect.RedoBeyond, redo, 60},
		{"index file in the middle removed", func(h *harm) { h.remove("index/20261129202851424") }, inspect.MissingKeys, "index/20261129202851709", 260},
	}
}

// R-E-095: each planted damage is found at its file and offset, and little else is said about it.
func TestCheckFindsEachPlantedDamage(t *testing.T) {
	t.Parallel()
	n := 0
	for store, rows := range damages() {
		whole := golden.Unpack(t, store)
		for _, tt := range rows {
			n++
			t.Run(store+"/"+tt.name, func(t *testing.T) { findsPlanted(t, whole, tt) })
		}
	}
	require.GreaterOrEqual(t, n, 40)
}

// findsPlanted does one damage to a copy of a store and looks for its finding.
func findsPlanted(t *testing.T, whole string, tt planted) {
	t.Helper()
	h := &harm{t, golden.Copy(t, whole)}
	want := tt.offset
	if want == -3 && tt.file == log0 {
		want = h.record(normal, 3)
	}
	tt.do(h)
	before := golden.Snapshot(t, h.dir)
	c, found := &collector{}, false
	for _, f := range check(t, open(t, h.dir), inspect.CheckOptions{}) {
		if f.Severity != inspect.Info {
			c.add(f)
			found = found || f.Kind == tt.kind && f.File == tt.file && (f.Offset == want || want == -3)
		}
	}
	require.True(t, found, "%s at %s %d: %q", tt.kind, tt.file, want, c.brief())
	require.Less(t, len(c.all), 40, "%q", c.brief())
	require.Equal(t, before, golden.Snapshot(t, h.dir))
	t.Log(c.brief())
}
