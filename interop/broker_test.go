//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/namesrv"
)

// ourBroker is a broker of ours, in this process, that can be stopped and started on its directory.
type ourBroker struct {
	opts   broker.Options
	broker *broker.Broker
}

func startOurBroker(t *testing.T, opts broker.Options) *ourBroker {
	t.Helper()
	if opts.Store.SegmentSize == 0 {
		opts.Store.SegmentSize, opts.Store.QueueSegmentSize, opts.Store.IndexSlots, opts.Store.IndexEntries = 16<<20, 6000, 500, 2000
	}
	o := &ourBroker{opts: opts}
	o.start(t)
	t.Cleanup(func() { o.stop(t) })
	return o
}

func (o *ourBroker) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	b, err := broker.Start(ctx, &o.opts)
	require.NoError(t, err)
	o.broker = b
}

func (o *ourBroker) stop(t *testing.T) {
	t.Helper()
	if o.broker != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, o.broker.Shutdown(ctx))
		o.broker = nil
	}
}

// received is a message as a driver prints it.
type received struct {
	queue, offset int64
	tags, keys, n string
	length        int
	body          string
}

func parseReceived(t *testing.T, rows []string) (list []received) {
	t.Helper()
	for _, row := range rows {
		var r received
		_, err := fmt.Sscan(row, &r.queue, &r.offset, &r.tags, &r.keys, &r.n, &r.length, &r.body)
		require.NoError(t, err, row)
		list = append(list, r)
	}
	return list
}

// requireSent checks what was received against what the driver's send makes: each message once, whole, in order per queue.
// Tags chooses those with one tag only.
func requireSent(t *testing.T, got []received, prefix string, count, size int, tags string) {
	t.Helper()
	want := map[string]received{}
	for i := range count {
		r := received{tags: []string{"TagA", "TagB"}[i%2], keys: "key" + strconv.Itoa(i), n: "v" + strconv.Itoa(i), body: prefix + strconv.Itoa(i)}
		r.length = max(len(r.body), size)
		if tags == "*" || strings.Contains(tags, r.tags) {
			want[r.body] = r
		}
	}
	last := map[int64]int64{}
	for _, r := range got {
		if !strings.HasPrefix(r.body, prefix) {
			continue
		}
		w, ok := want[r.body]
		require.True(t, ok, "unexpected or twice: %+v", r)
		delete(want, r.body)
		w.queue, w.offset = r.queue, r.offset
		require.Equal(t, w, r)
		if before, ok := last[r.queue]; ok {
			require.Greater(t, r.offset, before, "order in queue %d", r.queue)
		}
		last[r.queue] = r.offset
	}
	require.Empty(t, want, "not received")
}

// seen waits until a consumer of the driver has so many messages, and gives them in their order.
func seen(t *testing.T, client *javaProcess, name string, count int) []received {
	t.Helper()
	var list []received
	eventually(t, patience, client, name+" to see "+strconv.Itoa(count), func() bool {
		list = parseReceived(t, client.do(t, "seen", name))
		return len(list) >= count
	})
	return list
}

// byQueue sorts into the order of the queues: a concurrent listener is called from many threads.
func byQueue(list []received) []received {
	slices.SortFunc(list, func(a, b received) int {
		if a.queue != b.queue {
			return int(a.queue - b.queue)
		}
		return int(a.offset - b.offset)
	})
	return list
}

// TestJavaClientsUseOurBroker has the client of each line send in every way and consume in every way, from one name server and
// broker of ours, over a restart of the broker. R-F-06 to R-F-11, R-F-17, R-F-21, R-D-134, R-D-135.
func TestJavaClientsUseOurBroker(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, server := range flows() {
		for _, l := range []wireLine{wireLines()[1], wireLines()[2], wireLines()[0]} {
			t.Run(l.version+" on "+server.dialect, func(t *testing.T) {
				ns := startOurs(t, namesrv.Options{})
				b := startOurBroker(t, server.options(t, ns))
				client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
				eventually(t, patience, client, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
				client.do(t, "producer", ns.addr, "PG")
				total := javaSends(t, l, client)
				javaConsumes(t, ns, b, client, total)
				proved(t, l.version, server.name, append(sending(l.version), consuming()...)...)
			})
		}
	}
}

// flow is one of our servers with which every client does all that it can.
type flow struct{ name, dialect string }

// flows are the one of every run, and those of a full matrix.
func flows() []flow {
	all := []flow{{ours49, "4.9"}, {ours31, "3.1"}, {ours53, "5.3"}}
	if !everything() {
		all = all[:1]
	}
	return all
}

func (f flow) options(t *testing.T, ns *ours) broker.Options {
	o := broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()}
	o.Store.Dialect = f.dialect
	return o
}

// javaSends sends in every way that a line has, and returns how many messages there are now.
func javaSends(t *testing.T, l wireLine, client *javaProcess) int {
	t.Helper()
	const topic = "TopicOurs"
	next := map[string]int64{}
	requireRows := func(rows []string) {
		for _, row := range rows {
			var queue, offset string
			var body string
			_, err := fmt.Sscan(row, &queue, &offset, &body)
			require.NoError(t, err, row)
			n, err := strconv.ParseInt(offset, 10, 64)
			require.NoError(t, err)
			require.Equal(t, next[queue], n, row)
			next[queue]++
		}
	}
	requireRows(client.do(t, "send", "sync", topic, "sync-", "40", "0"))
	requireRows(client.do(t, "send", "ordered", topic, "ordered-", "40", "0"))
	require.Len(t, client.do(t, "send", "async", topic, "async-", "40", "0"), 40)
	client.do(t, "send", "oneway", topic, "oneway-", "20", "0")
	client.do(t, "send", "sync", topic, "big-", "8", "9000") // bodies above 4 KiB are compressed
	if l.version == "3.1.4" {
		return 148
	}
	rows := client.do(t, "send", "batch", topic, "batch-", "20", "0")
	require.Len(t, rows, 1)
	require.True(t, strings.HasSuffix(rows[0], " 20"), rows)
	return 168
}

// javaConsumes reads all of it in every way.
func javaConsumes(t *testing.T, ns *ours, b *ourBroker, client *javaProcess, total int) {
	t.Helper()
	const topic = "TopicOurs"
	check := func(got []received, tags string) {
		byQueue(got)
		for prefix, count := range map[string]int{"sync-": 40, "ordered-": 40, "async-": 40, "oneway-": 20} {
			requireSent(t, got, prefix, count, 0, tags)
		}
		requireSent(t, got, "big-", 8, 9000, tags)
		if total > 148 {
			requireSent(t, got, "batch-", 20, 0, tags)
		}
	}
	client.do(t, "push", "c1", ns.addr, "CG1", topic, "*", "cluster", "first")
	check(seen(t, client, "c1", total), "*")
	client.do(t, "push", "tag", ns.addr, "CGTAG", topic, "TagB", "cluster", "first")
	check(seen(t, client, "tag", total/2), "TagB")
	for _, name := range []string{"b1", "b2"} {
		client.do(t, "push", name, ns.addr, "CGB", topic, "*", "broadcast", "first")
	}
	client.do(t, "push", "o1", ns.addr, "CGO", topic, "*", "orderly", "first")
	require.Len(t, seen(t, client, "o1", total), total)
	inOrder(t, parseReceived(t, client.do(t, "seen", "o1")))
	check(parseReceived(t, client.do(t, "pull", ns.addr, "CGPULL", topic, "*")), "*")
	requireQueues(t, client.do(t, "queues", ns.addr, "CGPULL", topic, "0"), total)

	client.do(t, "send", "sync", topic, "live-", "10", "0")
	for _, name := range []string{"b1", "b2"} {
		got := byQueue(seen(t, client, name, total+10))
		check(got, "*")
		requireSent(t, got, "live-", 10, 0, "*")
	}
	requireSent(t, byQueue(seen(t, client, "c1", total+10)), "live-", 10, 0, "*")
	client.do(t, "stop", "c1")
	client.do(t, "stop", "tag")

	b.stop(t)
	b.start(t)
	eventually(t, patience, client, "registration after the restart", func() bool { return len(ns.brokers(t, topic)) == 1 })
	client.do(t, "send", "sync", topic, "after-", "12", "0")
	client.do(t, "push", "c2", ns.addr, "CG1", topic, "*", "cluster", "first")
	got := seen(t, client, "c2", 12)
	require.Len(t, got, 12) // and nothing of before
	requireSent(t, byQueue(got), "after-", 12, 0, "*")
	requireSent(t, seen(t, client, "o1", total+22), "after-", 12, 0, "*")
}

// inOrder checks that each queue's messages came in its order.
func inOrder(t *testing.T, got []received) {
	t.Helper()
	next := map[int64]int64{}
	for _, r := range got {
		require.Equal(t, next[r.queue], r.offset, "queue %d", r.queue)
		next[r.queue]++
	}
}

// requireQueues checks the driver's report on the queues of a topic: all begin at 0 and are read to their end.
func requireQueues(t *testing.T, rows []string, total int) {
	t.Helper()
	sum := 0
	for _, row := range rows {
		var queue, first, end, byTime, stored int
		_, err := fmt.Sscan(row, &queue, &first, &end, &byTime, &stored)
		require.NoError(t, err, row)
		require.Zero(t, first)
		require.Zero(t, byTime)
		require.Equal(t, end, stored)
		sum += end
	}
	require.Equal(t, total, sum)
}
