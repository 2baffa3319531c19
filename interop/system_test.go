//go:build interop

package interop_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/namesrv"
)

// tried is one delivery, as a driver prints it.
type tried struct {
	at       int64 // ms
	topic    string
	retries  int
	body, id string
}

func deliveries(t *testing.T, client *javaProcess, name string) (list []tried) {
	t.Helper()
	for _, row := range client.do(t, "seen", name) {
		var d tried
		_, err := fmt.Sscan(row, &d.at, &d.topic, &d.retries, &d.body, &d.id)
		require.NoError(t, err, row)
		list = append(list, d)
	}
	return list
}

// of are the deliveries of one body.
func of(list []tried, body string) []tried {
	return slices.DeleteFunc(slices.Clone(list), func(d tried) bool { return d.body != body })
}

// systemBroker is a broker of ours with short delay levels and checks, and a name server.
func systemBroker(t *testing.T, engine rocketstore.Engine) (*ours, *ourBroker) {
	t.Helper()
	ns := startOurs(t, namesrv.Options{})
	o := broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()}
	o.Store.SegmentSize, o.Store.QueueSegmentSize, o.Store.IndexSlots, o.Store.IndexEntries = 16<<20, 6000, 500, 2000
	o.Store.DelayLevels = "1s 2s 3s 1s 1s 2s"
	o.Store.Transactions = engine
	o.Store.Checks.Every, o.Store.Checks.MinAge = 2*time.Second, 3*time.Second
	b := startOurBroker(t, o)
	eventually(t, patience, &javaProcess{log: &tail{}}, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	return ns, b
}

// deadLetters are the bodies in a group's topic of dead letters.
func deadLetters(t *testing.T, b *ourBroker, group string) (list []string) {
	t.Helper()
	for r, err := range b.broker.Store().Messages("%DLQ%"+group, 0, 0) {
		require.NoError(t, err)
		list = append(list, string(r.Body))
	}
	return list
}

// TestJavaClientsRetryDelayAndTransact has the client of each line fail on messages until they are dead, send with delays, and
// send in transactions that are committed, rolled back, checked, and left behind by their producer; with both engines.
// R-F-12, R-F-13, R-F-15, R-D-010, R-D-099 to R-D-104, R-D-117, R-D-119, R-B-40 to R-B-49.
func TestJavaClientsRetryDelayAndTransact(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, l := range wireLines() {
		t.Run(l.version, func(t *testing.T) {
			client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.SystemDriver")
			for _, engine := range []rocketstore.Engine{rocketstore.HalfTopic, rocketstore.StateTable} {
				t.Run(engine.String(), func(t *testing.T) {
					ns, b := systemBroker(t, engine)
					suffix := strings.ToUpper(engine.String()) + strings.ReplaceAll(l.version, ".", "")
					javaTransactions(t, ns, b, client, suffix)
					proved(t, l.version, ours49, transacting(engine))
					if engine == rocketstore.HalfTopic || everything() {
						javaRetries(t, l, ns, b, client, suffix)
						javaDelaysAndQueries(t, ns, client, suffix)
						proved(t, l.version, ours49, deadLetter, delays)
					}
				})
			}
		})
	}
}

func javaRetries(t *testing.T, l wireLine, ns *ours, b *ourBroker, client *javaProcess, suffix string) {
	t.Helper()
	topic, group := "TopicRetry"+suffix, "CGR"+suffix
	client.do(t, "producer", ns.addr, "PGR"+suffix)
	client.do(t, "delay", topic, "good", "0")
	client.do(t, "delay", topic, "bad", "0")
	const most = 2
	old := l.version == "3.1.4"
	if old { // cannot say how many it wants: that is for the group
		makeGroup(t, b.broker.Addr(), group, most)
	}
	client.do(t, "push", "retry", ns.addr, group, topic, "cluster", strconv.Itoa(most))
	if old { // and tries in order without end
		eventually(t, patience, client, "a dead letter", func() bool { return len(deadLetters(t, b, group)) >= 1 })
		require.Equal(t, []string{"bad"}, deadLetters(t, b, group))
		requireTries(t, deliveries(t, client, "retry"), topic, "bad", most)
		client.do(t, "stop", "retry")
		return
	}
	client.do(t, "delay", topic, "bad-ordered", "0")
	client.do(t, "push", "ordered", ns.addr, group+"O", topic, "orderly", strconv.Itoa(most))
	eventually(t, patience, client, "dead letters", func() bool {
		return len(deadLetters(t, b, group)) >= 2 && len(deadLetters(t, b, group+"O")) >= 2
	})
	require.ElementsMatch(t, []string{"bad", "bad-ordered"}, deadLetters(t, b, group))
	require.ElementsMatch(t, []string{"bad", "bad-ordered"}, deadLetters(t, b, group+"O"))
	for _, body := range []string{"bad", "bad-ordered"} {
		requireTries(t, deliveries(t, client, "retry"), topic, body, most)
	}
	client.do(t, "stop", "retry")
	client.do(t, "stop", "ordered")
}

// requireTries wants a bad message to have been tried once and as many times more, and the good one once.
func requireTries(t *testing.T, all []tried, topic, body string, more int) {
	t.Helper()
	tries := of(all, body)
	require.Len(t, tries, more+1)
	for i, d := range tries {
		require.Equal(t, i, d.retries)
		require.Equal(t, topic, d.topic) // mapped back from the retry topic
	}
	require.Len(t, of(all, "good"), 1)
}

// makeGroup has a broker make a consumer group with so many retries.
func makeGroup(t *testing.T, addr, group string, retries int) {
	t.Helper()
	req := remoting.NewRequest(remoting.CreateSubscriptionGroup)
	req.Body = fmt.Appendf(nil, `{"groupName":%q,"consumeEnable":true,"consumeBroadcastEnable":true,"retryQueueNums":1,"retryMaxTimes":%d}`, group, retries)
	resp := ask(t, 10*time.Second, addr, req)
	require.Equal(t, remoting.Success, resp.Code, resp.Remark)
}

func javaDelaysAndQueries(t *testing.T, ns *ours, client *javaProcess, suffix string) {
	t.Helper()
	topic := "TopicDelay" + suffix
	began := time.Now().UnixMilli()
	levels := map[string]int64{"none": 0, "one": 1000, "three": 3000}
	ids := strings.Fields(client.do(t, "delay", topic, "none", "0")[0])
	client.do(t, "delay", topic, "one", "1")
	client.do(t, "delay", topic, "three", "3")
	client.do(t, "push", "delay", ns.addr, "CGD"+suffix, topic, "cluster", "-1")
	eventually(t, patience, client, "delayed messages", func() bool { return len(deliveries(t, client, "delay")) >= len(levels) })
	for body, after := range levels {
		got := of(deliveries(t, client, "delay"), body)
		require.Len(t, got, 1)
		require.GreaterOrEqual(t, got[0].at-began, after, body)
	}
	client.do(t, "stop", "delay")
	require.Equal(t, []string{"none"}, client.do(t, "query", topic, "key-none"))
	for _, id := range ids { // the offset id and the unique one
		require.Equal(t, []string{"none"}, client.do(t, "view", topic, id))
	}
}

func javaTransactions(t *testing.T, ns *ours, b *ourBroker, client *javaProcess, suffix string) {
	t.Helper()
	topic, group := "TopicTx"+suffix, "PGT"+suffix
	client.do(t, "tx", "p1", ns.addr, group, "commit")
	client.do(t, "half", "p1", topic, "kept", "commit")
	client.do(t, "half", "p1", topic, "dropped", "rollback")
	client.do(t, "half", "p1", topic, "asked", "unknown")
	client.do(t, "push", "tx", ns.addr, "CGT"+suffix, topic, "cluster", "-1")
	bodies := func() (list []string) {
		for _, d := range deliveries(t, client, "tx") {
			list = append(list, d.body)
		}
		return list
	}
	eventually(t, patience, client, "what was committed, also after a check", func() bool { return len(bodies()) >= 2 })
	require.ElementsMatch(t, []string{"kept", "asked"}, bodies())
	require.Contains(t, client.do(t, "checked", "p1"), "asked")
	require.NotContains(t, client.do(t, "checked", "p1"), "dropped")

	// Producers that go away with their transactions open: another of the group answers for them.
	client.do(t, "tx", "p2", ns.addr, group, "unknown")
	client.do(t, "end", "p1")
	client.do(t, "half", "p2", topic, "left", "unknown")
	client.do(t, "end", "p2")
	client.do(t, "tx", "p3", ns.addr, group, "commit")
	client.do(t, "half", "p3", topic, "known", "rollback") // one of 5.3 says that it is there only where it has sent to
	eventually(t, patience, client, "the answer of another producer", func() bool { return slices.Contains(bodies(), "left") })
	client.do(t, "end", "p3")
	client.do(t, "tx", "p4", ns.addr, group, "rollback")
	client.do(t, "half", "p4", topic, "undone", "unknown")
	eventually(t, patience, client, "no open transaction", func() bool { return len(openOf(t, b)) == 0 })
	require.ElementsMatch(t, []string{"kept", "asked", "left"}, bodies())
	client.do(t, "end", "p4")
	client.do(t, "stop", "tx")
}

// openOf are the numbers of the transactions that are open.
func openOf(t *testing.T, b *ourBroker) (numbers []int64) {
	t.Helper()
	for tx, err := range b.broker.Store().OpenTransactions(t.Context()) {
		require.NoError(t, err)
		numbers = append(numbers, tx.Number)
	}
	return numbers
}
