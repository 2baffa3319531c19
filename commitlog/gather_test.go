package commitlog_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// countFS counts writes and syncs of the log's files. A sync takes 4 ms of the bubble's time, or until answer is closed.
type countFS struct {
	mappedfile.FS
	answer        chan struct{}
	writes, syncs atomic.Int64
}

func (c *countFS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	return &countFile{f, c}, err
}

type countFile struct {
	mappedfile.File
	fsys *countFS
}

func (f *countFile) WriteAt(b []byte, off int64) (int, error) {
	f.fsys.writes.Add(1)
	return f.File.WriteAt(b, off)
}

func (f *countFile) Sync() error {
	if f.fsys.answer != nil {
		<-f.fsys.answer
	}
	time.Sleep(4 * time.Millisecond)
	f.fsys.syncs.Add(1)
	return f.File.Sync()
}

func openGathering(t *testing.T, fsys mappedfile.FS) *commitlog.Log {
	t.Helper()
	return openLog(t, fsys, commitlog.Options{Sync: commitlog.SyncGroup, Write: mappedfile.Pwrite, NoAhead: true, SegmentSize: 64 << 10})
}

// recordsIn counts the records that another process would find in the file.
func recordsIn(t *testing.T, fsys mappedfile.FS) int {
	t.Helper()
	f, err := fsys.OpenFile("commitlog/00000000000000000000", 0, 0)
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, 64<<10)
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	return strings.Count(string(b), "a body")
}

// Appends that wait for one sync are written by one write, which comes before it (R-E-030).
func TestWaitersShareOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := &countFS{FS: memfs.New()}
		l := openGathering(t, fsys)
		_, err := l.Append(t.Context(), record(t, "first, which makes the file"), nil, true)
		require.NoError(t, err)
		writes, syncs := fsys.writes.Load(), fsys.syncs.Load()
		errs, rec := make(chan error, 10), [10][]byte{}
		for i := range rec {
			rec[i] = record(t, "a body")
		}
		put := func(i int) {
			_, err := l.Append(context.Background(), rec[i], nil, true)
			errs <- err
		}
		go put(0)
		synctest.Wait() // its sync is under way
		for i := range 9 {
			go put(i + 1)
		}
		synctest.Wait()
		require.Equal(t, 1, recordsIn(t, fsys.FS))
		for range 10 {
			require.NoError(t, <-errs)
		}
		require.EqualValues(t, 2, fsys.writes.Load()-writes)
		require.EqualValues(t, 2, fsys.syncs.Load()-syncs)
		require.Equal(t, 10, recordsIn(t, fsys.FS))
		_, end := l.Bounds()
		require.Equal(t, end, l.Flushed())
	})
}

// What is answered without a sync is in the file by then, where the end of the process does not reach it: records that wait for
// none, and those whose wait ended early (R-E-030, R-D-136).
func TestWhatIsAnsweredWithoutASyncIsInTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := &countFS{FS: memfs.New(), answer: make(chan struct{})}
		l := openGathering(t, fsys)
		_, err := l.Append(t.Context(), record(t, "a body"), nil, false)
		require.NoError(t, err)
		require.Equal(t, 1, recordsIn(t, fsys.FS))
		began := time.Now()
		for n := range 3 { // the first begins a sync, the others find it under way
			_, err = l.Append(t.Context(), record(t, "a body"), nil, true)
			require.ErrorIs(t, err, commitlog.ErrSyncTimeout)
			require.Equal(t, time.Duration(n+1)*5*time.Second, time.Since(began))
			require.Equal(t, n+2, recordsIn(t, fsys.FS))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = l.Append(ctx, record(t, "a body"), nil, true)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 5, recordsIn(t, fsys.FS))
		require.NoError(t, l.AppendRaw(t.Context(), l.Queue().Written(), record(t, "a body"), false))
		require.Equal(t, 6, recordsIn(t, fsys.FS))
		require.Zero(t, l.Flushed())
		close(fsys.answer)
		_, err = l.Append(t.Context(), record(t, "a body"), nil, true)
		require.NoError(t, err)
		require.Equal(t, l.Queue().Written(), l.Flushed())
	})
}

// Each wait has a time of its own, whoever came before it (R-E-030).
func TestEachWaiterHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		g := commitlog.NewGroup(func() (int64, error) { <-answer; return 100, nil })
		began := time.Now()
		took := make(chan time.Duration, 8)
		wait := func(timeout time.Duration) {
			if errors.Is(g.Wait(t.Context(), 1, timeout), commitlog.ErrSyncTimeout) {
				took <- time.Since(began)
			}
		}
		go wait(3 * time.Second)
		synctest.Wait()
		go wait(time.Second) // shorter than the one before
		time.Sleep(500 * time.Millisecond)
		go wait(time.Second)
		go wait(time.Hour)
		for _, want := range []time.Duration{1000, 1500, 3000} {
			require.Equal(t, want*time.Millisecond, <-took)
		}
		close(answer)
		synctest.Wait()
		require.Empty(t, took)
	})
}

// A write of gathered records that fails is told to all who wait for it, and to all later ones (R-E-030).
func TestFailedWriteOfGatheredRecordsIsFinal(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	l := openGathering(t, fsys)
	_, err := l.Append(t.Context(), record(t, "kept"), nil, true)
	require.NoError(t, err)
	broken := errors.New("the device is gone")
	fsys.Fail(crashfs.OpWrite, "", broken)
	for _, wait := range []bool{true, false, true} {
		_, err = l.Append(t.Context(), record(t, "not stored"), nil, wait)
		require.ErrorIs(t, err, broken)
	}
	require.NotEqual(t, l.Queue().Written(), l.Flushed())
}
