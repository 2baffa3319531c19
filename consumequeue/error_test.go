package consumequeue_test

import (
	"bytes"
	"log/slog"
	"path"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// failingTable is a table with queue T/0 of seven units on a disk that fails on demand.
func failingTable(t *testing.T) (*crashfs.FS, *consumequeue.Table, *bytes.Buffer) {
	t.Helper()
	disk := crashfs.New(memfs.New())
	writer := openTable(t, disk, nil)
	appendRange(t, ensure(t, writer, "T", 0), 0, 7)
	require.NoError(t, writer.Sync(0))
	require.NoError(t, writer.Close())
	var logged bytes.Buffer
	table := openTable(t, disk, &consumequeue.Options{
		SegmentSize: small, Logger: slog.New(slog.NewTextHandler(&logged, nil)), Budget: mappedfile.NewBudget(1),
	})
	return disk, table, &logged
}

// A queue that cannot be read says why, and can be read when the device can.
func TestUnreadableFileIsAnErrorAndNotAnEmptyQueue(t *testing.T) {
	disk, table, logged := failingTable(t)
	q := table.Lookup("T", 0)
	disk.Fail(crashfs.OpOpen, "", syscall.EIO)
	first, end := q.Bounds()
	require.Equal(t, [2]int64{0, 0}, [2]int64{first, end})
	require.Equal(t, int64(-1), q.MaxPhysical())
	require.Contains(t, logged.String(), "input/output error")
	_, err := q.Get(0)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, "end of queue T/0")
	for what, err := range map[string]error{
		"load":     table.Load(),
		"append":   q.Append(7, nth(7)),
		"set":      q.Set(0, nth(0)),
		"truncate": q.TruncateAfter(0),
		"set min":  q.SetMin(0),
		"read":     second(q.Read(0, make([]consumequeue.Unit, 1))),
		"end":      second(q.FindEnd(false)),
		"careful":  second(q.FindEnd(true)),
		"min":      second(q.MinFor(0)),
		"at":       second(q.OffsetAt(0, func(consumequeue.Unit) (int64, error) { return 0, nil })),
		"delete":   second(q.DeleteBefore(0)),
	} {
		require.ErrorIs(t, err, syscall.EIO, what)
	}
	disk.Fail(crashfs.OpOpen, "", nil)
	require.NoError(t, table.Load())
	requireUnits(t, q, 0, 7)
	appendRange(t, q, 7, 8)
}

func second[T any](_ T, err error) error { return err }

// Reading errors also come through when the end is known.
func TestFileThatCannotBeMappedIsAnError(t *testing.T) {
	disk, table, logged := failingTable(t)
	q := table.Lookup("T", 0)
	require.NoError(t, table.Load())
	disk.Fail(crashfs.OpMap, "", syscall.ENOMEM)
	u, err := q.Get(6)
	require.NoError(t, err, "the last unit is known")
	require.Equal(t, nth(6), u)
	require.Equal(t, int64(70), q.MaxPhysical())
	require.ErrorIs(t, q.SetMin(0), syscall.ENOMEM)
	require.ErrorIs(t, second(q.Get(5)), syscall.ENOMEM)
	require.ErrorIs(t, second(q.Read(0, make([]consumequeue.Unit, 3))), syscall.ENOMEM)
	require.ErrorIs(t, second(q.MinFor(50)), syscall.ENOMEM)
	require.ErrorIs(t, second(q.DeleteBefore(50)), syscall.ENOMEM)
	require.ErrorIs(t, q.Append(7, nth(7)), syscall.ENOMEM)
	require.ErrorIs(t, q.Append(5, nth(5)), syscall.ENOMEM)
	require.NoError(t, q.SetMax(6))
	require.Equal(t, int64(-1), q.MaxPhysical())
	require.Contains(t, logged.String(), "read the last unit of a queue")
}

func TestUnreadableFolderIsAnError(t *testing.T) {
	disk, table, _ := failingTable(t)
	for _, dir := range []string{root, path.Join(root, "T"), path.Join(root, "T", "0")} {
		disk.Fail(crashfs.OpReadDir, dir, syscall.EACCES)
		_, err := consumequeue.OpenTable(disk, root, &consumequeue.Options{SegmentSize: small})
		require.ErrorIs(t, err, syscall.EACCES)
		disk.Fail(crashfs.OpReadDir, dir, nil)
	}
	disk.Fail(crashfs.OpReadDir, path.Join(root, "U", "0"), syscall.EACCES)
	_, err := table.Ensure("U", 0)
	require.ErrorIs(t, err, syscall.EACCES)
	require.ErrorContains(t, err, "open queue U/0")
	disk.Fail(crashfs.OpRemove, "", syscall.EACCES)
	require.ErrorIs(t, table.Remove(table.Lookup("T", 0)), syscall.EACCES)
}

// Cutting, deleting and repairing fail as a whole, and say of which queue.
func TestFailingCutsAreErrors(t *testing.T) {
	disk, table, _ := failingTable(t)
	q := table.Lookup("T", 0)
	disk.Fail(crashfs.OpRemove, "", syscall.EACCES)
	_, err := q.DeleteBefore(60)
	require.ErrorIs(t, err, syscall.EACCES)
	require.ErrorContains(t, err, "queue T/0")
	err = q.TruncateAfter(3)
	require.ErrorIs(t, err, syscall.EACCES)
	require.ErrorContains(t, err, "queue T/0")

	writeFile(t, disk, "consumequeue/V/0/00000000000000000000", nil)
	short := openTable(t, disk, nil).Lookup("V", 0)
	require.ErrorIs(t, short.Append(0, nth(0)), syscall.EACCES)
	require.ErrorIs(t, short.TruncateAfter(0), syscall.EACCES)
}
