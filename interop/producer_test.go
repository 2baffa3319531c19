//go:build interop

package interop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/properties"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/namesrv"
	"github.com/rocketstore/rocketstore/producer"
	"github.com/rocketstore/rocketstore/trace"
)

// ourProducer is started, and shut down with the test.
func ourProducer(t *testing.T, o producer.Options) *producer.Producer {
	t.Helper()
	o.SendTimeout = 10 * time.Second
	o.ClientOptions.HeartbeatEvery, o.ClientOptions.RouteEvery = time.Second, time.Second
	p, err := producer.New(&o)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context()))
	t.Cleanup(func() { stopOurProducer(t, p) })
	return p
}

func stopOurProducer(t *testing.T, p *producer.Producer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, p.Shutdown(ctx))
}

// sentByUs is what the drivers' send makes too, so that requireSent can check it.
func sentByUs(t *testing.T, topic, prefix string, i, size int) *message.Message {
	t.Helper()
	body := prefix + strconv.Itoa(i)
	m := &message.Message{Topic: topic, Body: []byte(body + strings.Repeat(".", max(size-len(body), 0)))}
	require.NoError(t, m.SetTag([]string{"TagA", "TagB"}[i%2]))
	require.NoError(t, m.SetKeys("key"+strconv.Itoa(i)))
	require.NoError(t, m.SetProperty("n", "v"+strconv.Itoa(i)))
	return m
}

// producerFlow is a broker that our producer sends to.
type producerFlow struct {
	name  string
	line  wireLine // of the client that reads
	start func(t *testing.T, ns *ours) *javaProcess
	// dialect is what the producer must be told to speak.
	dialect *dialect.Dialect
	// checks: the broker asks for transactions within seconds. batches: it takes batches.
	checks, batches bool
}

func producerFlows() []producerFlow {
	lines := wireLines()
	begin := func(l wireLine) func(*testing.T, *ours) *javaProcess {
		return func(t *testing.T, ns *ours) *javaProcess {
			return l.startBroker(t, ns.addr, map[string]string{
				"transactionTimeOut": "1000", "transactionCheckInterval": "1000", "traceTopicEnable": "true",
				"messageDelayLevel": "1s 2s 3s",
			})
		}
	}
	return []producerFlow{
		{"ours", lines[1], func(t *testing.T, ns *ours) *javaProcess {
			var o broker.Options
			_, err := o.SetProperties("transactionTimeOut=1000\ntransactionCheckInterval=1000\ntraceTopicEnable=true\nmessageDelayLevel=1s 2s 3s")
			require.NoError(t, err)
			o.Name, o.Port, o.NameServers, o.Dir = "broker-a", 10911, []string{ns.addr}, t.TempDir()
			startOurBroker(t, o)
			return &javaProcess{log: &tail{}}
		}, nil, true, true},
		{"4.9.7", lines[1], begin(lines[1]), nil, true, true},
		{"5.3.3", lines[2], begin(lines[2]), dialect.V53(), true, true},
		{"3.1.4", lines[0], begin(lines[0]), dialect.V31(), false, false},
		{"3.1.4, by default", lines[0], begin(lines[0]), nil, false, false}, // found out by its version (protocol.md 1.4)
	}
}

// decisions is a listener that commits what begins with commit, rolls back what begins with rollback, and leaves the rest to a check.
type decisions struct {
	checked atomic.Int64
	final   bool // checks are decided too
}

func (d *decisions) Execute(_ context.Context, m *message.Message, _ producer.Result, _ any) (producer.TransactionState, error) {
	switch {
	case strings.HasPrefix(string(m.Body), "commit"):
		return producer.Commit, nil
	case strings.HasPrefix(string(m.Body), "rollback"):
		return producer.Rollback, nil
	}
	return producer.Unknown, nil
}

func (d *decisions) Check(_ context.Context, m *message.Received) (producer.TransactionState, error) {
	d.checked.Add(1)
	switch {
	case !d.final:
		return producer.Unknown, nil
	case strings.HasPrefix(string(m.Body), "later-commit"):
		return producer.Commit, nil
	}
	return producer.Rollback, nil
}

// TestRealClientsReadWhatOurProducerSends has our producer send in every way to a broker of ours and to real ones, with trace on, and a
// real consumer of the broker's line read it; transactions left open are decided by a producer that is started later. R-D-008, R-D-014,
// R-D-119, R-D-149, R-A-53.
func TestRealClientsReadWhatOurProducerSends(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, f := range producerFlows() {
		t.Run(f.name, func(t *testing.T) {
			ns := startOurs(t, namesrv.Options{})
			b := f.start(t, ns)
			java := f.line.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
			eventually(t, patience, b, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
			topic := "TopicP"
			p := ourProducer(t, producer.Options{Group: "PG_OURS", NameServers: []string{ns.addr}, Listener: &decisions{}, Trace: f.batches, Dialect: f.dialect})
			total := sendEveryWay(t, p, topic, f.batches)
			var ids []producer.TransactionResult
			for i, body := range []string{"commit-", "rollback-", "later-commit-", "later-rollback-"} {
				m := sentByUs(t, topic, body, i, 0)
				r, err := p.SendInTransaction(t.Context(), m, nil)
				require.NoError(t, err)
				require.Equal(t, producer.OK, r.Status)
				ids = append(ids, r)
			}
			if f.batches {
				requireTrace(t, p, java, ids[0])
			}
			stopOurProducer(t, p)
			want := total + 1
			if f.checks {
				late := &decisions{final: true} // of another process, as far as the broker knows
				again := ourProducer(t, producer.Options{Group: "PG_OURS", NameServers: []string{ns.addr}, Listener: late})
				_, err := again.Send(t.Context(), sentByUs(t, topic, "after-", 0, 0))
				require.NoError(t, err)
				eventually(t, patience, b, "checks", func() bool { return late.checked.Load() >= 2 })
				want += 2
			}
			var got []received
			eventually(t, patience, b, fmt.Sprintf("%d messages", want), func() bool {
				got = parseReceived(t, java.do(t, "pull", ns.addr, "CG_P", topic, "*"))
				return len(bodies(got)) >= want
			})
			requireEveryWay(t, got, f.batches)
			all := bodies(got)
			require.Contains(t, all, "commit-0")
			require.NotContains(t, all, "rollback-1")
			require.NotContains(t, all, "later-rollback-3")
			if f.checks {
				require.Contains(t, all, "later-commit-2")
			}
			require.Len(t, all, want)
		})
	}
}

// bodies are the different ones.
func bodies(list []received) []string {
	var all []string
	for _, r := range list {
		all = append(all, r.body)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

const (
	eachWay = 20
	bigSize = 9000
)

// sendEveryWay sends messages in every mode and gives their number.
func sendEveryWay(t *testing.T, p *producer.Producer, topic string, batches bool) (total int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range eachWay {
		r, err := p.Send(t.Context(), sentByUs(t, topic, "sync-", i, 0))
		require.NoError(t, err)
		require.Equal(t, producer.OK, r.Status)
		_, err = p.Send(t.Context(), sentByUs(t, topic, "big-", i, bigSize))
		require.NoError(t, err)
		_, err = p.SendTo(t.Context(), sentByUs(t, topic, "fixed-", i, 0), r.Queue)
		require.NoError(t, err)
		_, err = p.SendSelect(t.Context(), sentByUs(t, topic, "ordered-", i, 0), producer.ByKey, i%3)
		require.NoError(t, err)
		all.Add(1)
		require.NoError(t, p.Async(t.Context(), sentByUs(t, topic, "async-", i, 0), func(_ producer.Result, err error) {
			defer all.Done()
			if err != nil {
				t.Errorf("async %d: %v", i, err)
			}
		}))
		require.NoError(t, p.Oneway(t.Context(), sentByUs(t, topic, "oneway-", i, 0)))
	}
	all.Wait()
	delayed := sentByUs(t, topic, "delayed-", 0, 0)
	delayed.SetDelayLevel(1)
	_, err := p.Send(t.Context(), delayed)
	require.NoError(t, err)
	total = 6*eachWay + 1
	if batches {
		var list []*message.Message
		for i := range eachWay {
			list = append(list, sentByUs(t, topic, "batch-", i, 0))
		}
		r, err := p.SendBatch(t.Context(), list)
		require.NoError(t, err)
		require.Len(t, strings.Split(r.OffsetID, ","), eachWay)
		total += eachWay
	}
	return total
}

func requireEveryWay(t *testing.T, got []received, batches bool) {
	t.Helper()
	for _, prefix := range []string{"sync-", "fixed-", "ordered-", "async-", "oneway-"} {
		requireAll(t, got, prefix, eachWay, 0)
	}
	requireAll(t, got, "big-", eachWay, bigSize)
	requireAll(t, got, "delayed-", 1, 0)
	if batches {
		requireAll(t, got, "batch-", eachWay, 0)
	}
}

// requireAll checks that each message of a prefix came whole. A broker of 4.x or 5.x may deliver a message twice when a check overtakes a
// decision, which only transactions can.
func requireAll(t *testing.T, got []received, prefix string, count, size int) {
	t.Helper()
	var rows []received
	for _, r := range got {
		if strings.HasPrefix(r.body, prefix) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b received) int { return int(a.offset - b.offset) })
	requireSent(t, rows, prefix, count, size, "*")
}

// requireTrace reads the trace of a transaction's message back from the broker's index.
func requireTrace(t *testing.T, p *producer.Producer, java *javaProcess, sent producer.TransactionResult) {
	t.Helper()
	var records []trace.Context
	eventually(t, patience, java, "trace", func() bool {
		list, err := p.Client().Query(t.Context(), trace.Topic, sent.MessageID, 32, 0, 0)
		if err != nil {
			return false
		}
		records = nil
		for _, m := range list {
			for c, err := range trace.Decode(m.Body) {
				require.NoError(t, err)
				records = append(records, c)
			}
		}
		line := trace.NewTimeline(sent.MessageID, records)
		return len(line.Sends) == 1 && len(line.Ends) == 1
	})
	line := trace.NewTimeline(sent.MessageID, records)
	require.Equal(t, sent.OffsetID, line.Sends[0].Beans[0].OffsetID)
	require.Equal(t, trace.Half, line.Sends[0].Beans[0].Type)
	require.True(t, line.Sends[0].Success)
	require.Equal(t, trace.StateCommit, line.Ends[0].Beans[0].State)
}

// startGuarded starts a real broker that checks accounts: ourproducer may send and consume all.
func (l wireLine) startGuarded(t *testing.T, ns *ours) *javaProcess {
	t.Helper()
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "conf"), 0o750))
	accounts := "globalWhiteRemoteAddresses: []\naccounts:\n- accessKey: ourproducer\n  secretKey: 12345678\n  whiteRemoteAddress:\n  admin: false\n" +
		"  defaultTopicPerm: PUB|SUB\n  defaultGroupPerm: PUB|SUB\n"
	require.NoError(t, os.WriteFile(filepath.Join(home, "conf", "plain_acl.yml"), []byte(accounts), 0o600))
	store := filepath.Join(home, "store")
	var text []byte
	for _, pair := range [][2]string{
		{"brokerName", "broker-a"},
		{"brokerIP1", "127.0.0.1"},
		{"brokerIP2", "127.0.0.1"},
		{"listenPort", "10911"},
		{"namesrvAddr", ns.addr},
		{"storePathRootDir", store},
		{"storePathCommitLog", filepath.Join(store, "commitlog")},
		{"mappedFileSizeCommitLog", "4194304"},
		{"aclEnable", "true"},
		{"diskMaxUsedSpaceRatio", "95"},
		{"transactionTimeOut", "1000"},
		{"transactionCheckInterval", "1000"},
		{"traceTopicEnable", "true"},
	} {
		text = properties.Append(text, pair[0], pair[1])
	}
	file := filepath.Join(home, "broker.conf")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return l.startJava(t, home, false, l.pkg+".broker.BrokerStartup", "-c", file)
}

// TestARealBrokerChecksOurSignature sends in every way, with trace on, to a real 4.9.7 broker that checks accounts; it also asks for a
// transaction that is left open, and a signed real consumer reads all. R-A-05, R-D-115, R-D-120.
func TestARealBrokerChecksOurSignature(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	ns := startOurs(t, namesrv.Options{})
	l := wireLines()[1]
	b := l.startGuarded(t, ns)
	java := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	eventually(t, patience, b, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	const topic = "TopicAcl"
	listener := &decisions{final: true}
	start := func(group string, k *producer.Credentials) *producer.Producer {
		return ourProducer(t, producer.Options{
			Group: group, NameServers: []string{ns.addr}, Retries: -1, ClientOptions: producer.ClientOptions{Credentials: k},
			Listener: listener, Trace: true,
		})
	}
	p := start("PG_RIGHT", &producer.Credentials{AccessKey: "ourproducer", SecretKey: "12345678"})
	total := sendEveryWay(t, p, topic, true)
	committed, err := p.SendInTransaction(t.Context(), sentByUs(t, topic, "commit-", 0, 0), nil)
	require.NoError(t, err)
	_, err = p.SendInTransaction(t.Context(), sentByUs(t, topic, "later-commit-", 0, 0), nil)
	require.NoError(t, err)
	requireTrace(t, p, java, committed)
	java.do(t, "key", "ourproducer", "12345678")
	var got []received
	eventually(t, patience, b, "all messages", func() bool {
		got = parseReceived(t, java.do(t, "pull", ns.addr, "CG_ACL", topic, "*"))
		return len(bodies(got)) >= total+2
	})
	requireEveryWay(t, got, true)
	require.Contains(t, bodies(got), "later-commit-0")
	require.Positive(t, listener.checked.Load())
	require.Zero(t, p.Stats().TraceDiscarded)

	for name, k := range map[string]*producer.Credentials{"PG_NONE": nil, "PG_WRONG": {AccessKey: "ourproducer", SecretKey: "87654321"}} {
		other := start(name, k)
		done := make(chan error, 1)
		require.NoError(t, other.Async(t.Context(), sentByUs(t, topic, "no-", 0, 0), func(_ producer.Result, err error) { done <- err }))
		_, sync := other.Send(t.Context(), sentByUs(t, topic, "no-", 1, 0))
		_, transaction := other.SendInTransaction(t.Context(), sentByUs(t, topic, "no-", 2, 0), nil)
		for _, err := range []error{<-done, sync, transaction} {
			refused, ok := errors.AsType[*producer.BrokerError](err)
			require.True(t, ok, "%v", err)
			require.EqualValues(t, 1, refused.Code)
		}
	}
}
