package broker_test

import (
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// slowDisk takes its time to sync a commit log.
type slowDisk struct {
	mappedfile.FS
	delay atomic.Int64 // of the next one, nanoseconds
}

func (d *slowDisk) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil || !strings.Contains(name, "commitlog") { // also while it is being made
		return f, err
	}
	return slowFile{f, d}, nil
}

func (d *slowDisk) wait() { time.Sleep(time.Duration(d.delay.Swap(0))) }

type slowFile struct {
	mappedfile.File
	disk *slowDisk
}

func (f slowFile) Sync() error {
	f.disk.wait()
	return f.File.Sync()
}

func (f slowFile) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	m, err := f.File.Map(size, access)
	return slowMapping{m, f.disk}, err
}

type slowMapping struct {
	mappedfile.Mapping
	disk *slowDisk
}

func (m slowMapping) SyncRange(off, n int) error {
	m.disk.wait()
	return m.Mapping.SyncRange(off, n)
}

// TestTheTimeOfPutsTellsASlowDisk shows what the broker's histogram is for: of a send that took long it holds the part that the broker
// took. It runs in real time, since a disk that waits under a lock stands still in a bubble. R-D-121.
func TestTheTimeOfPutsTellsASlowDisk(t *testing.T) {
	o := small("4.9")
	disk := &slowDisk{FS: o.Store.FS}
	o.Store.FS, o.Store.Sync = disk, commitlog.SyncGroup
	b := onLoopback(t, o)
	c := newClient(t)
	send := func(code int32, m outgoing) int32 {
		resp, err := c.Call(t.Context(), b.Addr(), m.request(code))
		require.NoError(t, err)
		return resp.Code
	}
	require.Zero(t, b.Stats().Puts.Count())
	for range 3 {
		require.Equal(t, remoting.Success, send(remoting.SendMessageV2, outgoing{topic: "T", body: "quick"}))
	}
	s := b.Stats()
	require.EqualValues(t, 3, s.Puts.Count())
	require.Positive(t, s.PutTime)

	const delay = 50 * time.Millisecond
	for _, slow := range []struct {
		code int32
		body string
	}{{remoting.SendMessageV2, "slow"}, {remoting.SendBatchMessage, string(batchBody("slow", ""))}} {
		disk.delay.Store(int64(delay))
		require.Equal(t, remoting.Success, send(slow.code, outgoing{topic: "T", body: slow.body}))
	}
	s = b.Stats()
	require.EqualValues(t, 5, s.Puts.Count())
	require.GreaterOrEqual(t, s.PutTime, 2*delay)
	require.GreaterOrEqual(t, s.Puts.Percentile(0.99), delay)

	require.NotEqual(t, remoting.Success, send(remoting.SendMessageV2, outgoing{topic: "T", queue: 99, body: "refused"}))
	require.EqualValues(t, 5, b.Stats().Puts.Count(), "what stored nothing does not count")
	require.NoError(t, b.Shutdown(t.Context()))
}
