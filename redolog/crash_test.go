package redolog_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/redolog"
)

// crashFile is units to a file: more than a page, so that files are torn in many places.
const crashFile = 300

func crashOptions() *redolog.Options {
	return &redolog.Options{SegmentSize: crashFile * redolog.UnitSize}
}

// errWrong stands where no call failed.
var errWrong = errors.New("wrong")

// history is what a workload did: units from first up to next, of which those below durable were acknowledged as durable.
type history struct{ first, next, durable int64 }

// work runs a random workload until the power fails.
func (h *history) work(log *redolog.Log, rnd *rand.Rand) error {
	for range 400 {
		switch op := rnd.IntN(40); {
		case op < 32:
			for range rnd.IntN(12) {
				if _, err := log.Append(unit(h.next)); err != nil {
					return err
				}
				h.next++
			}
		case op < 38:
			if err := log.Sync(0); err != nil {
				return err
			}
			h.durable = h.next
		case op < 39:
			number := h.next - rnd.Int64N(min(50, h.next-h.first)+1)
			h.durable = min(h.durable, number) // whatever comes now
			if _, err := log.TruncateFrom(unit(number).PhysicalOffset); err != nil {
				return err
			}
			if h.next, h.durable = number, number; number == h.first {
				h.first, h.next, h.durable = 0, 0, 0 // it begins anew
			}
		default:
			if h.next > h.first+2*crashFile {
				h.first += crashFile
				if _, err := log.DeleteBefore(unit(h.first).PhysicalOffset); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// check opens an image and looks for what was acknowledged. Then it recovers: it cuts what was not, and appends all again.
func (h *history) check(fsys mappedfile.FS) error {
	log, err := redolog.Open(fsys, redolog.Dir, crashOptions())
	if err != nil {
		return err
	}
	defer log.Abandon() //nolint:errcheck // it never fails
	if _, err := log.Repair(); err != nil {
		return err
	}
	end, err := log.FindEnd(true)
	if err != nil || end < h.durable {
		return fmt.Errorf("the log ends at %d, %d was durable: %w", end, h.durable, cmp.Or(err, errWrong))
	}
	if first, _ := log.Bounds(); first > h.first {
		return fmt.Errorf("the log begins at %d, not %d", first, h.first)
	}
	if err := log.TruncateAfter(end); err != nil {
		return err
	}
	// What was not durable may be torn and look right: it is cut by index, since its offsets are not to be trusted.
	if err := log.TruncateAfter(h.durable); err != nil {
		return err
	}
	for n := h.first; n < h.next; n++ {
		appended, err := log.Append(unit(n))
		if err != nil || appended != (n >= h.durable) {
			return fmt.Errorf("unit %d of %+v: appended %v: %w", n, h, appended, cmp.Or(err, errWrong))
		}
	}
	n := h.first
	for e, err := range log.Replay(h.first) {
		if err != nil || e.Unit != unit(n) || e.Index != n {
			return fmt.Errorf("unit %d is %+v: %w", n, e, cmp.Or(err, errWrong))
		}
		n++
	}
	if n != h.next {
		return fmt.Errorf("the log ends at %d, not %d", n, h.next)
	}
	return nil
}

// crash runs one workload into a power cut, with a bug planted if there is one, and gives the first thing that was wrong
// with what the disk may then hold.
func crash(t *testing.T, seed uint64, plant func(*crashfs.FS)) error {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 2))
	fsys := crashfs.New(memfs.New())
	if plant != nil {
		plant(fsys)
	}
	log, err := redolog.Open(fsys, redolog.Dir, crashOptions())
	require.NoError(t, err)
	defer log.Abandon() //nolint:errcheck // it never fails
	fsys.CrashAfter(1 + rnd.IntN(60))
	h := &history{}
	if err := h.work(log, rnd); err != nil && !errors.Is(err, crashfs.ErrCrashed) {
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

// After any power cut what was synced is there, and appending the rest again gives the log back.
func TestSyncedUnitsOutliveAPowerCut(t *testing.T) {
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

func TestAppendWithoutRoomLeavesTheLogAsItWas(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	log := filled(t, fsys, perFile)
	for _, op := range []crashfs.Op{crashfs.OpCreate, crashfs.OpTruncate, crashfs.OpAllocate} {
		fsys.Fail(op, "", syscall.ENOSPC)
		_, err := log.Append(unit(perFile))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Equal(t, span(0, perFile), indexes(t, log, 0))
		fsys.Fail(op, "", nil)
	}
	appended, err := log.Append(unit(perFile)) // it was not there, whatever was tried
	require.NoError(t, err)
	require.True(t, appended)
	require.Equal(t, span(0, perFile+1), indexes(t, reopen(t, fsys, log), 0))
}

// A failed sync is final: later appends are refused with its error, reading goes on.
func TestFailedSyncIsFinal(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	log := filled(t, fsys, 5)
	fsys.Fail(crashfs.OpSyncRange, "", syscall.EIO)
	require.ErrorIs(t, log.Sync(0), syscall.EIO)
	fsys.Fail(crashfs.OpSyncRange, "", nil)
	_, err := log.Append(unit(5))
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, log.Sync(0), syscall.EIO)
	require.Equal(t, span(0, 5), indexes(t, log, 0))
}

// A recovery can see whether a unit that Append skips is the right one.
func TestFindByTheMessagesPlace(t *testing.T) {
	log := filled(t, memfs.New(), 25)
	for _, index := range []int64{0, 9, 10, 24} {
		e, ok, err := log.Find(unit(index).PhysicalOffset)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, redolog.Entry{Index: index, Unit: unit(index)}, e)
	}
	for _, offset := range []int64{0, unit(3).PhysicalOffset + 1, unit(25).PhysicalOffset} {
		_, ok, err := log.Find(offset)
		require.NoError(t, err)
		require.False(t, ok)
	}
}
