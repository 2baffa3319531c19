package inspect_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// R-E-096: file and position give record, field and value; nothing is written.
func TestExplainNamesTheFieldOfAByte(t *testing.T) {
	t.Parallel()
	const tx = "transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0/00000000000000000500"
	for _, tt := range []struct {
		store, file string
		offset      int64
		what, field string
		start       int64
		value       string
	}{
		{store49, log0, 0, "record of the commit log", "record size", 0, ""},
		{store49, log0, 5, "record of the commit log", "magic", 0, "daa320a7"},
		{store49, log0, 28, "record of the commit log", "physical offset", 0, "0"},
		{store49, log0, 48, "record of the commit log", "born host", 0, ""},
		{store49, log0, 100, "record of the commit log", "body", 0, ""},
		{store49, log1, 262143, "blank at the end of a commit log file", "rest", 260934, ""},
		{store49, log2, 200_000, "zeros: nothing was written here", "bytes", 33319, ""},
		{store49, normal, 70, "unit 3 of queue GoldenNormal/0", "record size", 60, ""},
		{store49, normal2, 12, "unit 50 of queue GoldenNormal/0", "tags code", 0, ""},
		{store49, normal2, 990, "unit 99 of queue GoldenNormal/0", "record size", 980, "0"},
		{store49, idx1, 36, "header of an index file", "index count", 0, "400"},
		{store49, idx1, 62, "slot 5 of 100", "newest entry", 60, ""},
		{store49, idx1, entries + 21, "entry 1 of an index file with room for 399", "key hash", entries + 20, ""},
		{store49, idx1, entries + 39, "entry 1 of an index file with room for 399", "entry before it in the chain", entries + 20, "0"},
		{store49, "checkpoint", 8, "checkpoint", "time of the queues", 0, "2026-11-29T20:35:14.963Z (1795984514963)"},
		{store49, "checkpoint", 999, "checkpoint", "unused", 0, ""},
		{store49, "config/delayOffset.json", 20, "line 2, byte 19 of it", "line", 2, "\t\"offsetTable\":{1:8,2:2"},
		{store31, states, 92, "unit 3 of the state table", "state", 72, "committed"},
		{store31, tx, 0, "unit 25 of the redo log", "physical offset", 0, ""},
		{storeBCQ, batch, 46 + 37, "unit 1 of batch queue GoldenBcq/0", "messages", 46, ""},
		{storeExt, extFile, 3, "extension unit at address 0", "tags code", 0, ""},
		{"rocketmq-5.3.3/timer", "timerlog/00000000000000000000", 60, "unit 1 of the timer log", "position of the one before", 52, ""},
		{"rocketmq-4.9.7/abort-badcrc", log2, 76307 + 90, "record of the commit log", "body", 76307, ""},
		{"rocketmq-4.9.7/abort-torn", log2, 82400 + 21, "torn record of the commit log", "queue offset", 82400, ""},
	} {
		t.Run(tt.what+"/"+tt.field, func(t *testing.T) {
			dir := golden.Unpack(t, tt.store)
			before := golden.Snapshot(t, dir)
			x, err := open(t, dir).Explain(tt.file, tt.offset)
			require.NoError(t, err)
			require.Equal(t, before, golden.Snapshot(t, dir))
			require.Equal(t, tt.what, x.What)
			require.Equal(t, tt.start, x.Start)
			require.GreaterOrEqual(t, x.Field, 0)
			f := x.Fields[x.Field]
			require.Equal(t, tt.field, f.Name)
			if tt.value != "" {
				require.Equal(t, tt.value, f.Value)
			}
			b, err := os.ReadFile(dir + "/" + tt.file)
			require.NoError(t, err)
			require.Equal(t, b[f.Offset:f.Offset+int64(len(f.Bytes))], f.Bytes)
		})
	}
}

func TestExplainOfWhatIsNotThere(t *testing.T) {
	d := open(t, golden.Unpack(t, store31))
	for _, tt := range []struct {
		file   string
		offset int64
	}{{"checkpoint", -1}, {"checkpoint", 4096}, {"../checkpoint", 0}, {"nowhere/x", 0}} {
		_, err := d.Explain(tt.file, tt.offset)
		require.Error(t, err)
	}
	_, err := d.Explain("checkpoint", 1<<40)
	require.ErrorIs(t, err, inspect.ErrNothingThere)
}
