//go:build interop

package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/namesrv"
)

// TestConsumersOfOneGroupShareTheQueues has two instances of the Java client, and one of the Go client, join and leave a group.
// Nothing is lost; what is consumed while nobody joins or leaves is consumed once. R-F-11, R-C-54.
func TestConsumersOfOneGroupShareTheQueues(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	rlog.SetLogLevel("fatal")
	lines := wireLines()[1:2]
	if everything() {
		lines = wireLines()
	}
	for _, l := range lines {
		t.Run(l.version, func(t *testing.T) { shareTheQueues(t, l) })
	}
}

func shareTheQueues(t *testing.T, l wireLine) {
	t.Helper()
	const topic = "TopicShared"
	ns := startOurs(t, namesrv.Options{})
	b := startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()})
	client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	client.do(t, "producer", ns.addr, "PG")
	client.do(t, "send", "sync", topic, "seed-", "8", "0")
	queues := func(name string) map[int64]bool {
		used := map[int64]bool{}
		for _, r := range parseReceived(t, client.do(t, "seen", name)) {
			used[r.queue] = true
		}
		return used
	}
	client.do(t, "push", "j1", ns.addr, "CGS", topic, "*", "cluster", "first")
	requireSent(t, byQueue(seen(t, client, "j1", 8)), "seed-", 8, 0, "*")
	require.Len(t, queues("j1"), 4)

	client.do(t, "push", "j2", ns.addr, "CGS", topic, "*", "cluster", "first")
	shared := 0
	eventually(t, patience, client, "both to take part", func() bool { // as soon as the notice has come and both have rebalanced
		shared++
		client.do(t, "send", "sync", topic, "join"+strconv.Itoa(shared)+"-", "8", "0")
		return len(queues("j2")) >= 2
	})
	settled(t, client, "j1", "j2")
	before := map[string]int{"j1": len(client.do(t, "seen", "j1")), "j2": len(client.do(t, "seen", "j2"))}
	client.do(t, "send", "sync", topic, "two-", "40", "0")
	var both []received
	eventually(t, patience, client, "40 messages", func() bool {
		both = nil
		for name, n := range before {
			both = append(both, parseReceived(t, client.do(t, "seen", name))[n:]...)
		}
		return len(both) >= 40
	})
	requireSent(t, byQueue(both), "two-", 40, 0, "*")

	goes, c := startGoConsumer(t, "g1", ns.addr, "CGS", topic, "*") // a mixed group: all compute the same shares
	eventually(t, patience, client, "the Go client to take part", func() bool {
		shared++
		client.do(t, "send", "sync", topic, "mix"+strconv.Itoa(shared)+"-", "8", "0")
		return len(goes.all()) > 0
	})
	require.NoError(t, c.Shutdown())
	client.do(t, "stop", "j2")
	client.do(t, "send", "sync", topic, "last-", "16", "0")
	union := func() map[string]bool {
		bodies := map[string]bool{}
		for _, name := range []string{"j1", "j2"} {
			for _, r := range parseReceived(t, client.do(t, "seen", name)) {
				bodies[r.body] = true
			}
		}
		for _, row := range goes.all() {
			bodies[strings.Fields(row)[0]] = true
		}
		return bodies
	}
	want := 8 + 8*shared + 40 + 16
	eventually(t, patience, client, "all messages", func() bool { return len(union()) >= want })
	require.Len(t, union(), want)
	require.Equal(t, int64(want), b.broker.Stats().Sent)
	proved(t, l.version, ours49, joinAndLeave)
	proved(t, goClient, ours49, joinAndLeave)
}

// settled waits until two looks a second apart see the same number of messages.
func settled(t *testing.T, client *javaProcess, names ...string) {
	t.Helper()
	last := -1
	eventually(t, patience, client, "quiet", func() bool {
		n := 0
		for _, name := range names {
			n += len(client.do(t, "seen", name))
		}
		quiet := n == last
		last = n
		time.Sleep(2 * time.Second)
		return quiet
	})
}

// TestARealBrokerAndOursTakeTurnsOnADirectory runs a directory with the real 4.9.7 broker, ours, and the real one again: consumers
// go on where they were. R-F-08, R-F-21.
func TestARealBrokerAndOursTakeTurnsOnADirectory(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	const topic = "TopicTurns"
	l := wireLines()[1]
	ns := startOurs(t, namesrv.Options{})
	dir := filepath.Join(t.TempDir(), "store")
	client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	client.do(t, "producer", ns.addr, "PG")
	turn := func(n int) {
		prefix := fmt.Sprintf("turn%d-", n)
		client.do(t, "send", "sync", topic, prefix, "20", "0")
		name := "c" + strconv.Itoa(n)
		client.do(t, "push", name, ns.addr, "CGT", topic, "*", "cluster", "first")
		got := seen(t, client, name, 20)
		require.Len(t, got, 20, "what was consumed before must not come again")
		requireSent(t, byQueue(got), prefix, 20, 0, "*")
		// Offsets are sent oneway, and a broker that is told to stop at once may not look at them any more.
		eventually(t, patience, client, "stored offsets", func() bool { return ns.storedOffsets(t, topic, "CGT", 4) == int64(20*n) })
		client.do(t, "stop", name)
	}
	there := func() bool { return len(ns.brokers(t, "TBW102")) == 1 }
	realTurn := func(n int) {
		p := l.startBroker(t, ns.addr, map[string]string{"storePathRootDir": dir, "storePathCommitLog": filepath.Join(dir, "commitlog")})
		eventually(t, patience, p, "registration", there)
		turn(n)
		p.signal(t, syscall.SIGTERM)
		select {
		case <-p.gone:
		case <-time.After(patience):
			t.Fatal("the real broker does not stop")
		}
	}
	realTurn(1)
	o := broker.Options{Name: "broker-a", Port: 10911, NameServers: []string{ns.addr}, Dir: dir}
	o.Store.SegmentSize, o.Store.QueueSegmentSize = sizeOf(t, filepath.Join(dir, "commitlog")), sizeOf(t, filepath.Join(dir, "consumequeue", topic, "0"))
	b := startOurBroker(t, o)
	require.False(t, b.broker.Store().Report().Unclean)
	eventually(t, patience, client, "registration", there)
	turn(2)
	b.stop(t)
	realTurn(3)
	b.start(t)
	eventually(t, patience, client, "registration", there)
	turn(4)
	proved(t, "4.9.7", ours49, takingTurns)
}

// sizeOf is the length of the first file of a folder.
func sizeOf(t *testing.T, dir string) int64 {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	info, err := entries[0].Info()
	require.NoError(t, err)
	return info.Size()
}
