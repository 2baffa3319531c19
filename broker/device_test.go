package broker_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// hungDevice answers no sync of the commit log from stop on, until go on.
type hungDevice struct {
	mappedfile.FS
	mu   sync.Mutex
	gate chan struct{} // closed: syncs pass
}

func newHungDevice(fsys mappedfile.FS) *hungDevice {
	d := &hungDevice{FS: fsys, gate: make(chan struct{})}
	close(d.gate)
	return d
}

func (d *hungDevice) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = make(chan struct{})
}

func (d *hungDevice) goOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.gate)
}

func (d *hungDevice) wait() {
	d.mu.Lock()
	gate := d.gate
	d.mu.Unlock()
	<-gate
}

func (d *hungDevice) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil || !strings.Contains(name, "commitlog") { // a new file has another name before
		return f, err
	}
	return hungFile{f, d}, nil
}

type hungFile struct {
	mappedfile.File
	device *hungDevice
}

func (h hungFile) Sync() error {
	h.device.wait()
	return h.File.Sync()
}

// Under SYNC_FLUSH every sender has its answer in time, also the one whose message began the sync, when the device hangs: stored,
// but not known to be on the disk (R-D-136, protocol.md 4.2). Who does not want to wait does not.
func TestADeviceThatHangsHoldsUpNoSender(t *testing.T) {
	o := small("4.9")
	device := newHungDevice(o.Store.FS)
	o.Store.FS = device
	unknown, err := o.SetProperties("flushDiskType=SYNC_FLUSH\nsyncFlushTimeout=50\nosPageCacheBusyTimeOutMills=600000\n")
	require.NoError(t, err)
	require.Empty(t, unknown)
	b := onLoopback(t, o)
	put := func(m outgoing) int32 {
		m.topic = "T"
		resp, err := newClient(t).Call(t.Context(), b.Addr(), m.request(remoting.SendMessageV2))
		require.NoError(t, err)
		return resp.Code
	}
	require.Equal(t, remoting.Success, put(outgoing{body: "before"}))
	device.stop()
	defer device.goOn()
	for range 3 {
		require.Equal(t, remoting.FlushDiskTimeout, put(outgoing{body: "meanwhile"}))
	}
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			resp, err := newClient(t).Call(context.Background(), b.Addr(), outgoing{topic: "T", body: "together"}.request(remoting.SendMessageV2))
			if err != nil || resp.Code != remoting.FlushDiskTimeout {
				t.Errorf("%v %v", resp, err)
			}
		})
	}
	senders.Wait()
	require.Equal(t, remoting.Success, put(outgoing{body: "loose", properties: "WAIT\x01false\x02"}))
	end, err := newClient(t).Call(t.Context(), b.Addr(), remoting.NewRequest(remoting.GetMaxOffset, queueFields("T", 0)...))
	require.NoError(t, err)
	require.Equal(t, "9", end.Fields.Get("offset")) // all are stored
}

// The default is five seconds, as in the original (R-D-136).
func TestTheTimeForASyncIsFiveSeconds(t *testing.T) {
	o := broker.Options{Dir: t.TempDir()}
	text, err := o.Properties()
	require.NoError(t, err)
	require.Contains(t, text, "flushDiskType=ASYNC_FLUSH\n")
	require.Contains(t, text, "syncFlushTimeout=5000\n")
}
