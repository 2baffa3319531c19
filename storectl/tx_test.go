package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
)

// The table and the redo log are listed as the real ones hold them, for all stores of 3.1.4, and an export leaves each as it
// is: what it writes are half messages that can be committed, with the message's own bytes (R-B-64, R-B-69, R-B-70).
func TestTransactionsOfGoldenStoresAreListedAndExported(t *testing.T) {
	for _, name := range golden.Names("3.1.4") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			dir, want := golden.Unpack(t, name), golden.Load(t, name)
			before := golden.Snapshot(t, dir)
			list, _, _ := rows[txRow](t, "tx", dir)
			var table []golden.StateRecord
			for _, r := range list {
				table = append(table, golden.StateRecord{
					Number: r.Index, PhysicalOffset: r.ClOffset, Size: r.Size, StoredAt: int32(r.Timestamp), GroupHash: r.GroupHash, State: r.State,
				})
			}
			require.ElementsMatch(t, want.StateTable(), table)
			redo, _, _ := rows[redoRow](t, "tx", dir, "--redo")
			var units []golden.Unit
			for _, r := range redo {
				units = append(units, golden.Unit{Index: r.Index, PhysicalOffset: r.Offset, Size: r.Size, TagsCode: r.TagsCode})
			}
			require.ElementsMatch(t, want.RedoLog(), units)

			out := filepath.Join(golden.TempDir(t), "out")
			moved, _, _ := rows[txExported](t, "tx", "export", "--half", dir, out, "--segment-size", "65536", "--index-slots", "100", "--index-entries", "400")
			require.Equal(t, before, golden.Snapshot(t, dir))
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), []string{"tx", "export", "--half", dir, dir}, &stdout, &stderr) // refused before it is recovered
			require.Equal(t, statusTrouble, status)
			require.Contains(t, stderr.String(), "kept in a state table")
			require.Equal(t, before, golden.Snapshot(t, dir))
			var open []int64
			for _, tx := range want.Derived().OpenTransactions {
				open = append(open, tx.PhysicalOffset)
			}
			var got []int64
			for _, r := range moved {
				got = append(got, r.PhysicalOffset)
			}
			require.ElementsMatch(t, open, got)
			commitExported(t, out, moved, want)
		})
	}
}

// A store of 3.1 that 4.x went on with has both a state table and half messages, and both are listed.
func TestTransactionsOfAStoreThatWasMovedAreListedFromBoth(t *testing.T) {
	old, dir := golden.Unpack(t, "rocketmq-3.1.4/mid-transaction"), golden.Unpack(t, "rocketmq-4.9.7/clean")
	halves, _, _ := rows[txRow](t, "tx", dir)
	require.NotEmpty(t, halves)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "transaction"), os.DirFS(filepath.Join(old, "transaction"))))
	table, _, _ := rows[txRow](t, "tx", old)
	both, _, _ := rows[txRow](t, "tx", dir)
	require.Len(t, both, len(table)+len(halves))
	for i, r := range both[len(table):] {
		require.True(t, r.Half)
		require.Equal(t, halves[i].ClOffset, r.ClOffset)
	}
	for _, r := range both[:len(table)] {
		require.False(t, r.Half)
	}
	open, _, _ := rows[txRow](t, "tx", dir, "--open")
	require.Less(t, len(open), len(both))
	_, text, _ := call(t, "tx", dir)
	require.Regexp(t, `Z half +`, text)
	require.Regexp(t, `Z committed +`, text)
}

func commitExported(t *testing.T, out string, moved []txExported, want *golden.Expected) {
	t.Helper()
	s, err := rocketstore.Open(out, &rocketstore.Options{HoldDelayed: true})
	require.NoError(t, err)
	for _, r := range moved {
		if r.Result != txDone {
			require.Empty(t, r.Group)
			continue
		}
		res, err := s.EndTransaction(t.Context(), rocketstore.TransactionEnd{
			ProducerGroup: r.Group, PreparedOffset: r.HalfOffset, Number: r.HalfQueue, Commit: true,
		})
		require.NoError(t, err)
		m, err := s.MessageAt(res.PhysicalOffset)
		require.NoError(t, err)
		for _, w := range want.Records() {
			if w.PhysicalOffset != r.PhysicalOffset {
				continue
			}
			require.Equal(t, w.Topic, m.Topic)
			require.Equal(t, w.QueueID, m.QueueID)
			require.Equal(t, w.BodyCRC, message.CRC(m.Body))
			require.Equal(t, w.Flag, m.Flag)
			require.Equal(t, w.BornTimestamp, m.BornTimestamp)
			for k, v := range w.Properties {
				have, _ := m.Properties.Get(k)
				require.Equal(t, v, have)
			}
		}
	}
	for tx, err := range s.OpenTransactions(t.Context()) {
		require.NoError(t, err)
		require.Fail(t, "still open", "%+v", tx)
	}
	require.NoError(t, s.Close(t.Context()))
}

// A 3.1 store whose folder transaction is gone is told as one: the open ones are listed, and rebuild makes both files again.
func TestALostTransactionFolderIsToldAndMadeAgain(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-3.1.4/mid-transaction")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "transaction")))
	status, out, errOut := call(t, "tx", dir, "--open")
	require.Equal(t, statusFindings, status)
	require.Contains(t, out+errOut, "is open by the log, and there is neither a state table nor a redo log")
	require.NotContains(t, errOut, "not stopped cleanly")
	status, _, _ = call(t, "check", dir)
	require.Equal(t, statusFindings, status)
	made, _, _ := rows[inspect.Rebuilt](t, "rebuild", dir, "--to", filepath.Join(golden.TempDir(t), "new"))
	require.Len(t, made, 1)
	require.Positive(t, made[0].States)
	require.Positive(t, made[0].RedoUnits)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "abort"), nil, 0o600))
	_, out, errOut = call(t, "tx", dir, "--open")
	require.Contains(t, out+errOut, "is open by the log")
	require.Contains(t, errOut, "not stopped cleanly, or running")
}
