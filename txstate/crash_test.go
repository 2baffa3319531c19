package txstate_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

// crashFile is records to a file: more than a page, so that files are torn in many places.
const crashFile = 300

func crashOptions() *txstate.Options {
	return &txstate.Options{SegmentSize: crashFile * txstate.RecordSize}
}

// history is what a workload did: records and their states now, and how much of it was acknowledged as durable.
type history struct {
	records map[int64]txstate.State // now
	next    int64
	durable map[int64]txstate.State // at the last sync
	first   int64                   // numbers below it may be deleted
}

func (h *history) synced() { h.durable = maps.Clone(h.records) }

// work runs a random workload until the power fails.
func (h *history) work(table *txstate.Table, rnd *rand.Rand) error {
	for range 400 {
		switch op := rnd.IntN(40); {
		case op < 20:
			for range rnd.IntN(8) {
				if err := table.Append(h.next, record(h.next)); err != nil {
					return err
				}
				h.records[h.next] = txstate.Prepared
				h.next++
			}
		case op < 34:
			number := h.first + rnd.Int64N(max(1, h.next-h.first))
			if h.records[number] != txstate.Prepared {
				continue
			}
			to := []txstate.State{txstate.Committed, txstate.RolledBack}[rnd.IntN(2)]
			h.records[number] = to // it may be there even if the power fails now
			if _, err := table.Update(number, record(number).CommitOffset, record(number).GroupHash, to); err != nil {
				return err
			}
		case op < 38:
			before := maps.Clone(h.records)
			if err := table.Sync(0); err != nil {
				return err
			}
			h.durable = before
		case op < 39:
			number := h.next - rnd.Int64N(min(50, h.next-h.first)+1)
			maps.DeleteFunc(h.durable, func(n int64, _ txstate.State) bool { return n >= number }) // whatever comes now
			if err := table.TruncateAfter(number); err != nil {
				return err
			}
			maps.DeleteFunc(h.records, func(n int64, _ txstate.State) bool { return n >= number })
			h.next = number
			h.synced()
		default:
			if h.next > h.first+2*crashFile {
				h.first += crashFile
				if _, err := table.DeleteBefore(record(h.first).CommitOffset); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// check opens an image and looks for what was acknowledged. Then it recovers as a dispatcher does, from the durable part
// on, and the table must be as if nothing had happened.
func (h *history) check(fsys mappedfile.FS) error {
	table, err := txstate.Open(fsys, txstate.Dir, crashOptions())
	if err != nil {
		return err
	}
	defer table.Abandon() //nolint:errcheck // it never fails
	if _, err := table.Repair(); err != nil {
		return err
	}
	end, err := table.FindEnd(true)
	if err != nil {
		return err
	}
	durable := h.first
	for n := range h.durable {
		durable = max(durable, n+1)
	}
	if len(h.durable) > 0 && end < durable {
		return fmt.Errorf("the table ends at %d, %d was durable", end, durable)
	}
	if first, _ := table.Bounds(); first > h.first {
		return fmt.Errorf("the table begins at %d, not %d", first, h.first)
	}
	if err := h.checkDurable(table, durable); err != nil {
		return err
	}
	return h.again(table, durable)
}

func (h *history) checkDurable(table *txstate.Table, durable int64) error {
	for n := h.first; n < durable; n++ {
		got, err := table.Get(n)
		if err != nil {
			return err
		}
		want := record(n)
		want.State = got.State
		now, ok := h.records[n]
		if got != want || got.State != h.durable[n] && (!ok || got.State != now) {
			return fmt.Errorf("record %d is %+v, was %v, then %v", n, got, h.durable[n], now)
		}
	}
	return nil
}

func (h *history) again(table *txstate.Table, durable int64) error {
	if err := table.TruncateAfter(durable); err != nil {
		return err
	}
	for n := h.first; n < h.next; n++ {
		if err := table.Append(n, record(n)); err != nil {
			return err
		}
		if to := h.records[n]; to != txstate.Prepared {
			if _, err := table.Update(n, record(n).CommitOffset, record(n).GroupHash, to); err != nil {
				return err
			}
		}
	}
	open := map[int64]bool{}
	for e, err := range table.All(h.first) {
		if err != nil {
			return err
		}
		open[e.Number] = true
	}
	for n := h.first; n < h.next; n++ {
		if open[n] != (h.records[n] == txstate.Prepared) {
			return fmt.Errorf("record %d: open %v, want state %v", n, open[n], h.records[n])
		}
	}
	return nil
}

// crash runs one workload into a power cut, with a bug planted if there is one, and gives the first thing that was wrong
// with what the disk may then hold.
func crash(t *testing.T, seed uint64, plant func(*crashfs.FS)) error {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	fsys := crashfs.New(memfs.New())
	if plant != nil {
		plant(fsys)
	}
	table, err := txstate.Open(fsys, txstate.Dir, crashOptions())
	require.NoError(t, err)
	defer table.Abandon() //nolint:errcheck // it never fails
	fsys.CrashAfter(1 + rnd.IntN(80))
	h := &history{records: map[int64]txstate.State{}}
	if err := h.work(table, rnd); err != nil && !errors.Is(err, crashfs.ErrCrashed) {
		return fmt.Errorf("the workload: %w", err)
	}
	snapshot := fsys.Snapshot()
	for image := range uint64(8) {
		if err := h.check(snapshot.Image(image)); err != nil {
			return fmt.Errorf("image %d: %w", image, err)
		}
	}
	return nil
}

// R-B-56, R-B-57 for the table: after any power cut what was synced is there, with its old or its new state, and replaying
// the rest gives the table back.
func TestSyncedRecordsOutliveAPowerCut(t *testing.T) {
	for seed := range uint64(60) {
		require.NoError(t, crash(t, seed, nil), "seed %d", seed)
	}
}

// A suite that does not see a missing sync proves nothing.
func TestCrashSuiteSeesPlantedBugs(t *testing.T) {
	for _, op := range []crashfs.Op{crashfs.OpSyncRange, crashfs.OpSyncDir} {
		seen := 0
		for seed := range uint64(60) {
			if crash(t, seed, func(fsys *crashfs.FS) { fsys.Ignore(op, "") }) != nil {
				seen++
			}
		}
		require.Positive(t, seen, "%s", op)
	}
}

// R-B-10: a file that cannot be made is an error, and the counter stays; later it goes on.
func TestAppendWithoutRoomLeavesTheTableAsItWas(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	table := filled(t, fsys, perFile)
	for _, op := range []crashfs.Op{crashfs.OpCreate, crashfs.OpTruncate, crashfs.OpAllocate} {
		fsys.Fail(op, "", syscall.ENOSPC)
		require.ErrorIs(t, table.Append(perFile, record(perFile)), syscall.ENOSPC)
		require.Equal(t, int64(perFile), table.Next())
		require.Len(t, openNumbers(t, table, 0), perFile)
		fsys.Fail(op, "", nil)
	}
	require.NoError(t, table.Append(perFile, record(perFile)))
	require.Equal(t, int64(perFile+1), reopen(t, fsys, table).Next())
}

// A failed sync is final: later appends are refused with its error, reading goes on.
func TestFailedSyncIsFinal(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	table := filled(t, fsys, 5)
	fsys.Fail(crashfs.OpSyncRange, "", syscall.EIO)
	require.ErrorIs(t, table.Sync(0), syscall.EIO)
	fsys.Fail(crashfs.OpSyncRange, "", nil)
	require.ErrorIs(t, table.Sync(0), syscall.EIO)
	require.ErrorIs(t, table.Append(5, record(5)), syscall.EIO)
	_, err := table.Update(1, record(1).CommitOffset, record(1).GroupHash, txstate.Committed)
	require.ErrorIs(t, err, syscall.EIO)
	require.Len(t, openNumbers(t, table, 0), 5)
}
