package broker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// harm changes the first byte of each body in the log.
func harm(t *testing.T, o *broker.Options, bodies ...string) {
	t.Helper()
	const name = "commitlog/00000000000000000000"
	f, err := o.Store.FS.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	text := make([]byte, size)
	_, err = f.ReadAt(text, 0)
	if !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
	for _, body := range bodies {
		at := bytes.Index(text, []byte(body))
		require.Positive(t, at)
		_, err = f.WriteAt([]byte{'!'}, int64(at))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
}

func write(t *testing.T, fsys mappedfile.FS, name, text string) {
	t.Helper()
	require.NoError(t, fsys.MkdirAll("config", 0o750))
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(0))
	_, err = f.WriteAt([]byte(text), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestARestartKeepsEverything(t *testing.T) { // R-F-04, R-F-05, R-F-08
	for _, dialect := range []string{"3.1", "4.9", "5.3"} {
		inWorld(t, small(dialect), func(t *testing.T, w *world) {
			p := w.peer()
			p.puts("T", "a", "b")
			p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
			p.ask(remoting.UpdateConsumerOffset, queueFields("T", 0, remoting.Int("commitOffset", 1))...)
			before := w.broker.Stats()
			w.stop()
			var topics config.Topics
			_, err := config.Load[mappedfile.File](w.opts.Store.FS, &topics)
			require.NoError(t, err)
			made, ok := topics.Table.Get("T")
			require.True(t, ok)
			require.Equal(t, int32(4), made.WriteQueues)
			_, there := topics.Table.Get("SCHEDULE_TOPIC_XXXX")
			require.Equal(t, dialect != "3.1", there)

			w.start()
			require.Equal(t, before.Topics, w.broker.Stats().Topics)
			require.Equal(t, before.Groups, w.broker.Stats().Groups)
			q := w.peer()
			require.Equal(t, []string{"a", "b"}, bodies(t, q.pull(pulling{topic: "T"})))
			require.Equal(t, "1", q.ask(remoting.QueryConsumerOffset, queueFields("T", 0)...).Fields.Get("offset"))
			require.False(t, w.broker.Store().Report().Unclean)
		})
	}
}

func TestADamagedTableEndsTheStartBeforeAnythingIsChanged(t *testing.T) { // R-F-04
	for _, name := range []string{"config/topics.json", "config/subscriptionGroup.json", "config/consumerOffset.json"} {
		o := small("4.9")
		write(t, o.Store.FS, name, `{"`)
		_, err := broker.New(t.Context(), &o)
		var damage *config.DamageError
		require.ErrorAs(t, err, &damage)
		require.Equal(t, name, damage.File)
		_, err = o.Store.FS.OpenFile("abort", os.O_RDONLY, 0)
		require.ErrorIs(t, err, os.ErrNotExist)
		write(t, o.Store.FS, name, `{}`)
		b, err := broker.New(t.Context(), &o) // the lock was given back
		require.NoError(t, err)
		require.NoError(t, b.Shutdown(t.Context()))
	}
}

func TestOptionsAreChecked(t *testing.T) { // R-F-23, R-F-27, R-G-02
	for want, change := range map[string]func(o *broker.Options){
		"brokerIP1":                   func(o *broker.Options) { o.BindAddress = "0.0.0.0" },
		"no IP address":               func(o *broker.Options) { o.AdvertisedIP = "broker.example" },
		"no store directory is named": func(o *broker.Options) { o.Store.FS = nil },
		"cluster or broker name":      func(o *broker.Options) { o.Name = "a b" },
		"MaxConns -1 is negative":     func(o *broker.Options) { o.MaxConns = -1 },
		"port 70000 is above 65535":   func(o *broker.Options) { o.Port = 70000 },
		"name server":                 func(o *broker.Options) { o.NameServers = []string{"nowhere"} },
		"permission 1":                func(o *broker.Options) { o.Permission = 1 },
		"unknown TLS mode":            func(o *broker.Options) { o.TLS.Mode = "perhaps" },
	} {
		o := small("4.9")
		change(&o)
		_, err := broker.New(t.Context(), &o)
		require.ErrorIs(t, err, broker.ErrOptions, want)
		if !strings.Contains(want, "TLS") {
			require.ErrorContains(t, err, want)
		}
	}
	o := small("4.9")
	o.BindAddress, o.AdvertisedIP = "0.0.0.0", "192.0.2.7"
	b, err := broker.New(t.Context(), &o)
	require.NoError(t, err)
	require.NoError(t, b.Shutdown(t.Context()))
}

func TestAStoppedBrokerServesNobody(t *testing.T) { // R-F-05, R-G-09
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		w.stop()
		require.False(t, w.broker.Ready())
		require.ErrorIs(t, w.broker.Serve(context.Background(), remoting.NewPipe()), broker.ErrClosed)
		require.NoError(t, w.broker.Shutdown(context.Background()))
	})
}

func TestPropertiesOfTheOriginal(t *testing.T) { // R-G-01, R-F-28 (a slave is refused), protocol.md 16
	var o broker.Options
	unknown, err := o.SetProperties("brokerName=b\nbrokerIP1=10.0.0.1\nlistenPort=0\nnamesrvAddr=a:1; b:2\nautoCreateTopicEnable=false\n" +
		"flushDiskType=SYNC_FLUSH\nmapedFileSizeCommitLog=1048576\nstorePathRootDir=/s\nstorePathCommitLog=/s/commitlog\ndeleteWhen=04;16\n" +
		"fileReservedTime=72\nbrokerRole=ASYNC_MASTER\nlongPollingEnable=false\npullMessageThreadPoolNums=4\n")
	require.NoError(t, err)
	require.Equal(t, []string{"pullMessageThreadPoolNums"}, unknown)
	require.Equal(t, []string{"a:1", "b:2"}, o.NameServers)
	require.True(t, o.NoAutoTopics && o.NoLongPolling)
	require.Equal(t, int64(1<<20), o.Store.SegmentSize)
	require.Equal(t, []int{4, 16}, o.Store.Retention.Hours)
	addr, err := o.Address()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:0", addr)
	text, err := o.Properties()
	require.NoError(t, err)
	require.Contains(t, text, "flushDiskType=SYNC_FLUSH\n")
	require.Contains(t, text, "registerNameServerPeriod=30000\n")
	var again broker.Options
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "=\n") && !strings.HasSuffix(line, "=0\n") { // what is not set is the directory's or nothing
			_, err = again.SetProperties(line)
			require.NoError(t, err, line)
		}
	}
	for line, want := range map[string]string{
		"brokerRole=SLAVE":          "ASYNC_MASTER",
		"listenPort=x":              "0 (any) to 65535",
		"flushDiskType=MAYBE":       "SYNC_FLUSH",
		"deleteWhen=25":             "00 to 23",
		"storePathCommitLog=/x/log": "commitlog",
		"brokerId=-1":               "0 to",
		"traceOn=yes":               "true, false",
	} {
		_, err := new(broker.Options).SetProperties(line)
		require.ErrorContains(t, err, want, line)
	}
}
