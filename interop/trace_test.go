//go:build interop

package interop_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/namesrv"
	"github.com/rocketstore/rocketstore/producer"
)

// javaTrace is a trace record as the real decoder reads it; view is what mqadmin makes of it.
type javaTrace struct {
	kind, time, region, group, cost, success, requestID, code, topic, id, offsetID, tags, keys, storeHost, bodyLength, messageType string
	transactionID, state, fromCheck                                                                                                string

	messageKeys string // of the message that brought it
	view        string
}

func parseTraces(t *testing.T, rows []string) (list []javaTrace) {
	t.Helper()
	for _, row := range rows {
		f := strings.Split(row, "\t")
		if f[0] == "view" {
			last := &list[len(list)-1]
			if last.view == "" && f[1] == last.kind { // of all records with that id
				last.view = strings.Join(f[1:], " ")
			}
			continue
		}
		require.Len(t, f, 20, row)
		list = append(list, javaTrace{
			f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9], f[10], f[11], f[12], f[13], f[14], f[15], f[16], f[17], f[18], f[19], "",
		})
	}
	return list
}

// tracedSend is what a record has to say.
type tracedSend struct {
	kind, topic, id, offsetID, tags, keys, messageType string
	bodyLength                                         int
	success, fromCheck                                 bool
	state                                              string
}

func (w tracedSend) require(t *testing.T, got javaTrace, host string, began time.Time) {
	t.Helper()
	or := func(s string) string {
		if s == "" {
			return "null" // Java's text for none
		}
		return s
	}
	ms, err := strconv.ParseInt(got.time, 10, 64)
	require.NoError(t, err)
	require.True(t, ms >= began.UnixMilli() && ms <= time.Now().UnixMilli(), "%+v", got)
	region := "DefaultRegion"
	if w.kind == "Pub" && w.offsetID == "" { // no broker named one
		region = "null"
	}
	want := javaTrace{
		kind: w.kind, time: got.time, region: region, group: "PG_TRACED", cost: got.cost, success: strconv.FormatBool(w.success),
		requestID: got.requestID, // the decoder makes one up
		code:      "0", topic: w.topic, id: w.id, offsetID: or(w.offsetID), tags: or(w.tags), keys: or(w.keys), storeHost: host,
		bodyLength: strconv.Itoa(w.bodyLength), messageType: w.messageType, transactionID: "null", state: "null",
		fromCheck: strconv.FormatBool(w.fromCheck), messageKeys: got.messageKeys, view: got.view,
	}
	status := "failed"
	if w.success {
		status = "success"
	}
	offsetID := or(w.offsetID)
	if w.kind == "EndTransaction" {
		want.transactionID, want.state = w.id, w.state
		want.success, want.offsetID, offsetID = got.success, got.offsetID, got.offsetID // not in the record: what a new context has
		status = map[string]string{"true": "success", "false": "failed"}[got.success]
	}
	cost, err := strconv.Atoi(got.cost)
	require.NoError(t, err)
	require.True(t, cost >= 0 && cost <= int(time.Since(began).Milliseconds()), "%+v", got)
	require.Equal(t, want, got)
	require.Equal(t, strings.Join([]string{w.kind, "PG_TRACED", got.cost, status, w.topic, w.id, offsetID, or(w.tags), or(w.keys), host}, " "), got.view)
	for id := range strings.SplitSeq(w.id, ",") { // by which mqadmin queryMsgTraceById finds it
		require.Contains(t, strings.Fields(got.messageKeys), id)
	}
}

// TestTheRealDecodersReadOurTrace has our producer and consumer trace what they do, and the real clients of 4.9.7 and 5.3.3 decode it with
// TraceDataEncoder and TraceView, which mqadmin and the dashboard use. R-A-50 to R-A-53, R-A-33, R-A-36, R-A-48.
func TestTheRealDecodersReadOurTrace(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	ns := startOurs(t, namesrv.Options{})
	var o broker.Options
	_, err := o.SetProperties("transactionTimeOut=1000\ntransactionCheckInterval=1000\ntraceTopicEnable=true")
	require.NoError(t, err)
	o.Name, o.Port, o.NameServers, o.Dir = "broker-a", 10911, []string{ns.addr}, t.TempDir()
	b := startOurBroker(t, o)
	eventually(t, patience, &javaProcess{log: &tail{}}, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	began := time.Now().Truncate(time.Millisecond)
	sends := tracedSends(t, ns)
	consumed := tracedConsumer(t, ns, sends[0].id)
	for i, l := range wireLines()[1:] {
		t.Run(l.version, func(t *testing.T) {
			client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
			rows := client.do(t, "trace", ns.addr, "CG_TRACE"+strconv.Itoa(i), "RMQ_SYS_TRACE_TOPIC")
			list := parseTraces(t, rows)
			for _, w := range sends {
				at := slices.IndexFunc(list, func(got javaTrace) bool { return got.kind == w.kind && got.id == w.id && got.state != "UNKNOW" })
				require.GreaterOrEqual(t, at, 0, "%+v in %q", w, rows)
				w.require(t, list[at], b.broker.Addr(), began)
			}
			requireConsumed(t, list, sends[0].id, consumed)
		})
	}
}

// tracedSends sends in every way with trace on, and gives what was sent once all of the trace is stored.
func tracedSends(t *testing.T, ns *ours) (all []tracedSend) {
	t.Helper()
	const topic = "TopicTraced"
	late := &decisions{final: true}
	p := ourProducer(t, producer.Options{
		Group: "PG_TRACED", NameServers: []string{ns.addr}, Listener: late, Trace: true, TraceErrors: true, Retries: -1, CompressFrom: 4096,
		TraceOptions: producer.TraceOptions{FlushTimeout: 10 * time.Second},
	})
	pub := func(m *message.Message, r producer.Result, kind string, length int) {
		all = append(all, tracedSend{
			kind: "Pub", topic: topic, id: r.MessageID, offsetID: r.OffsetID, tags: m.Tag(), keys: m.Property(message.PropertyKeys),
			messageType: kind, bodyLength: length, success: true,
		})
	}
	m := sentByUs(t, topic, "one-", 0, 0)
	require.NoError(t, m.SetKeys("order-7", "größe"))
	r, err := p.Send(t.Context(), m)
	require.NoError(t, err)
	pub(m, r, "Normal_Msg", len(m.Body))
	plain := &message.Message{Topic: topic, Body: []byte("no tag, no key")}
	done := make(chan producer.Result, 1)
	require.NoError(t, p.Async(t.Context(), plain, func(r producer.Result, err error) {
		if err != nil {
			t.Error(err)
		}
		done <- r
	}))
	pub(plain, <-done, "Normal_Msg", len(plain.Body))
	delayed := sentByUs(t, topic, "delayed-", 1, 0)
	delayed.SetDelayLevel(1)
	r, err = p.Send(t.Context(), delayed)
	require.NoError(t, err)
	pub(delayed, r, "Delay_Msg", len(delayed.Body))
	batch := []*message.Message{sentByUs(t, topic, "batch-", 2, 0), sentByUs(t, topic, "batch-", 3, 0), sentByUs(t, topic, "batch-", 4, 0)}
	r, err = p.SendBatch(t.Context(), batch)
	require.NoError(t, err)
	length := 0
	for _, m := range batch {
		length += 4 + 4 + 4 + 4 + 4 + len(m.Body) + 2 + len(m.Properties) + len("UNIQ_KEY\x01") + 32 + len("\x02WAIT\x01true")
	}
	pub(batch[0], r, "Normal_Msg", length)
	_, err = p.SendTo(t.Context(), plain, producer.Queue{Topic: topic, BrokerName: "broker-a", QueueID: 99})
	refused, ok := errors.AsType[*producer.SendError](err)
	require.True(t, ok, "%v", err)
	all = append(all, tracedSend{kind: "Pub", topic: topic, id: refused.MessageID, messageType: "Normal_Msg", bodyLength: len(plain.Body)})
	for i, body := range []string{"commit-", "rollback-", "later-commit-"} {
		m := sentByUs(t, topic, body, i, 0)
		r, err := p.SendInTransaction(t.Context(), m, nil)
		require.NoError(t, err)
		pub(m, r.Result, "Trans_Msg_Half", len(m.Body))
		all = append(all, tracedSend{
			kind: "EndTransaction", topic: topic, id: r.MessageID, tags: m.Tag(), keys: m.Property(message.PropertyKeys),
			messageType: "Trans_msg_Commit", state: []string{"COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "COMMIT_MESSAGE"}[i], fromCheck: i == 2,
		})
	}
	eventually(t, patience, &javaProcess{log: &tail{}}, "a check", func() bool { return late.checked.Load() > 0 })
	stopOurProducer(t, p)
	require.Zero(t, p.Stats().TraceDiscarded)
	return all
}

// tracedConsumer consumes the message with that id with trace on and says what its keys are.
func tracedConsumer(t *testing.T, ns *ours, id string) (keys string) {
	t.Helper()
	d, err := producer.NewAsyncDispatcher("CG_TRACED", producer.TraceOptions{
		Consumes: true, ClientOptions: &producer.ClientOptions{NameServers: []string{ns.addr}}, FlushTimeout: 10 * time.Second,
	})
	require.NoError(t, err)
	found := make(chan string, 1)
	o := ourConsumer(ns.addr, "CG_TRACED", "TopicTraced", &ourSeen{})
	o.Trace = d
	o.Listener = func(_ context.Context, b *consumer.Batch) error {
		for _, m := range b.Messages {
			if m.ID() == id {
				found <- m.Property(message.PropertyKeys)
			}
		}
		return nil
	}
	c, err := consumer.Start(t.Context(), &o)
	require.NoError(t, err)
	keys = <-found
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, c.Close(ctx))
	require.Zero(t, d.Discarded())
	return keys
}

// requireConsumed looks for the two records of a call of a listener.
func requireConsumed(t *testing.T, list []javaTrace, id, keys string) {
	t.Helper()
	find := func(kind string) javaTrace {
		at := slices.IndexFunc(list, func(got javaTrace) bool { return got.kind == kind && got.id == id })
		require.GreaterOrEqual(t, at, 0, kind)
		return list[at]
	}
	before, after := find("SubBefore"), find("SubAfter")
	require.Equal(t, "CG_TRACED "+keys, before.group+" "+before.keys)
	require.Equal(t, "true 0 "+keys, after.success+" "+after.code+" "+after.keys)
	require.Equal(t, before.requestID, after.requestID)
	require.Contains(t, strings.Fields(before.messageKeys), id)
}
