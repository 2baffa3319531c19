package inspect_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

func (h *harm) add32(file string, off int64, d int32) {
	h.change(file, off, func(b []byte) { binary.BigEndian.PutUint32(b, uint32(int32(binary.BigEndian.Uint32(b))+d)) })
}

func (h *harm) add64(file string, off, d int64) {
	h.change(file, off, func(b []byte) { binary.BigEndian.PutUint64(b, uint64(int64(binary.BigEndian.Uint64(b))+d)) })
}

func (h *harm) move(from, to string) { require.NoError(h, os.Rename(h.path(from), h.path(to))) }

func (h *harm) replace(file, from, to string) {
	text := h.read(file)
	require.Contains(h, text, from)
	h.write(file, strings.Replace(text, from, to, 1))
}

// plausible are fields that could be right by themselves, and files that could be right at another place.
func plausible() map[string][]planted {
	entry := func(n, at int64) int64 { return entries + 20*n + at }
	return map[string][]planted{
		store49: {
			{"unit, size off by one", func(h *harm) { h.add32(normal, 68, 1) }, inspect.WrongUnit, normal, 60},
			{"unit, place off by one", func(h *harm) { h.add64(normal, 60, 1) }, inspect.WrongUnit, normal, 60},
			{"last unit, size off by one", func(h *harm) { h.add32(normal2, 17*20+8, -1) }, inspect.WrongUnit, normal2, 17 * 20},
			{"unit of the neighbour queue", func(h *harm) {
				h.put64(normal, 60, uint64(h.record("consumequeue/GoldenNormal/1/00000000000000000000", 3)))
			}, inspect.WrongUnit, normal, 60},
			{"entry, time off by one", func(h *harm) { h.add32(idx1, entry(9, 12), 1) }, inspect.WrongEntry, idx1, entry(9, 12)},
			{"entry, place off by one", func(h *harm) { h.add64(idx1, entry(9, 4), 1) }, inspect.WrongEntry, idx1, entry(9, 0)},
			{"header, one entry too many", func(h *harm) { h.add32(idx2, 36, 1) }, inspect.WrongHeader, idx2, 36},
			{"header, one entry too few", func(h *harm) { h.add32(idx2, 36, -1) }, inspect.WrongHeader, idx2, 36},
			{"header, end time one ms later", func(h *harm) { h.add64(idx1, 8, 1) }, inspect.WrongHeader, idx1, 8},
			{"header, begin time one ms sooner", func(h *harm) { h.add64(idx1, 0, -1) }, inspect.WrongHeader, idx1, 0},
			{"checkpoint one minute ahead", func(h *harm) { h.add64("checkpoint", 0, 60_000) }, inspect.CheckpointBeyond, "checkpoint", 0},
			{"checkpoint of the queues one minute ahead", func(h *harm) { h.add64("checkpoint", 8, 60_000) }, inspect.CheckpointBeyond, "checkpoint", 8},
			{"group's offset one behind the end", func(h *harm) { h.write("config/consumerOffset.json", `{"offsetTable":{"GoldenNormal@g":{0:69}}}`) }, inspect.OffsetBeyond, "config/consumerOffset.json", 16},
			{"group's offset below -1", func(h *harm) { h.write("config/consumerOffset.json", `{"offsetTable":{"GoldenNormal@g":{0:-5}}}`) }, inspect.OffsetBeyond, "config/consumerOffset.json", 16},
			{"segment of the log too long", func(h *harm) { h.cut(log1, 262_144+4096) }, inspect.WrongSize, log1, 0},
			{"last segment of the log too long", func(h *harm) { h.cut(log2, 262_144+4096) }, inspect.WrongSize, log2, 0},
			{"name of a segment off by one", func(h *harm) { h.move(log1, "commitlog/00000000000000262145") }, inspect.Overlap, log2, 0},
			{"name of a queue's file off by a unit", func(h *harm) { h.move(normal2, "consumequeue/GoldenNormal/0/00000000000000001020") }, inspect.Gap, "consumequeue/GoldenNormal/0/00000000000000001020", 0},
			{"file of a queue too long", func(h *harm) { h.cut(normal, 1020) }, inspect.WrongSize, normal, 0},
			{"empty file far behind a queue's end", func(h *harm) {
				h.write("consumequeue/GoldenNormal/0/00000000000000009000", string(make([]byte, 1000)))
			}, inspect.Gap, "consumequeue/GoldenNormal/0/00000000000000009000", 0},
			{"segment far behind the end of the log", func(h *harm) {
				h.write("commitlog/00000000000002621440", string(make([]byte, 262_144)))
			}, inspect.Gap, "commitlog/00000000000002621440", 0},
			{"topic of a record", func(h *harm) { h.rename(h.record(normal, 3), "GoldenNormal", "GoldenNormaX") }, inspect.WrongUnit, normal, 60},
			{"queue id of a record", func(h *harm) { h.put32(log0, h.record(normal, 3)+12, 1) }, inspect.OffsetTwice, log0, -3},
			{"queue id of a record that no queue has", func(h *harm) { h.put32(log0, h.record(normal, 3)+12, 77) }, inspect.MissingQueue, "consumequeue/GoldenNormal/77", 0},
			{"topic's number of queues", func(h *harm) { h.replace("config/topics.json", `"readQueueNums":3`, `"readQueueNums":-3`) }, inspect.BadFile, "config/topics.json", -3},
			{"topic's permission", func(h *harm) { h.replace("config/topics.json", `"perm":6`, `"perm":600`) }, inspect.BadFile, "config/topics.json", -3},
			{"topic with the name of another", func(h *harm) {
				h.replace("config/topics.json", `"topicName":"GoldenOrder"`, `"topicName":"GoldenOrdeX"`)
			}, inspect.BadFile, "config/topics.json", -3},
			{"header, many entries too many", func(h *harm) { h.add32(idx2, 36, 20) }, inspect.WrongHeader, idx2, 36},
		},
		store31: {
			{"redo unit of a record that is not prepared", func(h *harm) {
				at := h.record("consumequeue/TopicAlpha/0/00000000000000000000", 0)
				h.put64(redo, 60, uint64(at))
			}, inspect.WrongRedo, redo, 60},
			{"redo unit, size off by one", func(h *harm) { h.add32(redo, 68, 1) }, inspect.WrongRedo, redo, 68},
			{"state record, size off by one", func(h *harm) { h.add32(states, 80, 1) }, inspect.WrongState, states, 80},
			{"state record, time off by a minute", func(h *harm) { h.add32(states, 84, 60) }, inspect.WrongState, states, 84},
			{"committed, says rolled back", func(h *harm) { h.change(states, 72+20, func(b []byte) { b[3] ^= 8 ^ 12 }) }, inspect.StateBehind, states, 92},
			{"state table's file too long", func(h *harm) { h.cut(states, 600) }, inspect.WrongSize, states, 0},
			{"name of the redo log's second file", func(h *harm) {
				h.move("transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0/00000000000000000500", "transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0/00000000000000000520")
			}, inspect.Gap, "transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0/00000000000000000520", 0},
		},
	}
}

// R-E-095: what could be right by itself is found too, at its file and offset.
func TestCheckFindsWhatIsPlausibleByItself(t *testing.T) {
	t.Parallel()
	for store, rows := range plausible() {
		whole := golden.Unpack(t, store)
		for _, tt := range rows {
			t.Run(store+"/"+tt.name, func(t *testing.T) { findsPlanted(t, whole, tt) })
		}
	}
}

// A stored offset of a queue that is not there is named, but no damage: a topic that got fewer queues leaves it behind.
func TestCheckNamesOffsetsOfQueuesThatAreNotThere(t *testing.T) {
	h := &harm{t, golden.Unpack(t, store49)}
	h.write("config/consumerOffset.json", `{"offsetTable":{"GoldenNormal@g":{77:3}}}`)
	for _, f := range check(t, open(t, h.dir), inspect.CheckOptions{}) {
		if f.Kind == inspect.OffsetBeyond {
			require.Equal(t, [3]any{inspect.Info, "config/consumerOffset.json", int64(16)}, [3]any{f.Severity, f.File, f.Offset})
			return
		}
	}
	t.Fatal("nothing was said")
}
