package producer_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/mqtest"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
	"github.com/rocketstore/rocketstore/trace"
)

var pause = flag.Duration("pause", 0, "what BenchmarkMatrix waits after each 1000 messages")

// nowhere is a dispatcher that keeps nothing.
type nowhere struct{}

func (nowhere) Start(context.Context) error    { return nil }
func (nowhere) Append(*trace.Context) bool     { return true }
func (nowhere) Flush(context.Context)          {}
func (nowhere) Shutdown(context.Context) error { return nil }

func TestTracingASendMakesOneContextAndOneBean(t *testing.T) { // R-A-62
	hook := producer.TracingHook(nowhere{})
	m := msg("T", "body")
	require.NoError(t, m.SetKeys("k1", "k2"))
	require.NoError(t, m.SetTag("tag"))
	result := producer.Result{Region: "DefaultRegion", TraceOn: true, OffsetID: "O", MessageID: "M"}
	c := producer.SendContext{Group: "PG", Message: m, Topic: "T", MessageID: "M", Body: m.Body, Result: &result, Broker: "b:1"}
	n := testing.AllocsPerRun(100, func() {
		c.Trace = nil
		if hook.BeforeSend(&c) != nil || hook.AfterSend(&c) != nil || c.Trace == nil {
			t.Error("not traced")
		}
	})
	require.LessOrEqual(t, n, 2.0, "the context, and the list of one bean")
}

// tcpBroker is a name server and a broker on loopback that answers each send at once, so that what is measured is the producer.
func tcpBroker(tb testing.TB, topic string) (nameServer string) {
	tb.Helper()
	serve := func(h remoting.Handler) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(tb, err)
		s, err := remoting.NewServer(&remoting.ServerOptions{Handler: h, Sequential: true})
		require.NoError(tb, err)
		served := make(chan error, 1)
		go func() { served <- s.Serve(context.Background(), l) }()
		tb.Cleanup(func() {
			s.Close()
			require.NoError(tb, <-served)
		})
		return l.Addr().String()
	}
	broker := serve(func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
		if !isSend(req.Code) {
			return req.Reply(remoting.Success)
		}
		return req.Reply(remoting.Success, remoting.String("msgId", "7F00000100002A9F0000000000000000"), remoting.String("queueId", "0"),
			remoting.String("queueOffset", "0"), remoting.String("MSG_REGION", "DefaultRegion"), remoting.String("TRACE_ON", "true"))
	})
	names := mqtest.NewNames()
	for _, name := range []string{topic, trace.Topic} {
		names.Set(name, 4, "a", broker)
	}
	return serve(names.Handle)
}

func measured(tb testing.TB, o producer.Options) *producer.Producer {
	tb.Helper()
	o.Group, o.NameServers = "PG", []string{tcpBroker(tb, "T")}
	p, err := producer.New(&o)
	require.NoError(tb, err)
	require.NoError(tb, p.Start(context.Background()))
	tb.Cleanup(func() { _ = p.Shutdown(context.Background()) }) // what was measured is measured
	_, err = p.Send(context.Background(), msg("T", "route and connection"))
	require.NoError(tb, err)
	return p
}

// text is what compresses as prose does.
func text(size int) string {
	return strings.Repeat("The quick brown fox jumps over the lazy dog, and the dog does not mind at all. ", size/78+1)[:size]
}

// load is one cell of the matrix.
type load struct {
	mode     producer.Mode
	size     int
	rate     int // messages for each second, 0: as many as it can
	messages int
	pause    time.Duration // after each 1000
}

// outcomeOf is what became of a load.
type outcomeOf struct {
	took           time.Duration
	stored, failed int
	latency        []time.Duration // of those that were answered, ascending
	throughput     float64
}

// run sends a load, as the sample program of the articles does.
func (l load) run(p *producer.Producer) (o outcomeOf) {
	var mu sync.Mutex
	var all sync.WaitGroup
	body := text(l.size)
	began := time.Now()
	note := func(sent time.Time, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			o.failed++
			return
		}
		o.stored++
		o.latency = append(o.latency, time.Since(sent))
	}
	for i := range l.messages {
		if l.rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(l.rate))))
		}
		if i > 0 && i%1000 == 0 {
			time.Sleep(l.pause)
		}
		sent, m := time.Now(), msg("T", body)
		switch l.mode {
		case producer.Sync:
			_, err := p.Send(context.Background(), m)
			note(sent, err)
		case producer.Async:
			all.Add(1)
			err := p.Async(context.Background(), m, func(_ producer.Result, err error) {
				defer all.Done()
				note(sent, err)
			})
			if err != nil {
				note(sent, err)
				all.Done()
			}
		case producer.Oneway:
			note(sent, p.Oneway(context.Background(), m))
		}
	}
	all.Wait()
	o.took = time.Since(began)
	slices.Sort(o.latency)
	o.throughput = float64(o.stored) / o.took.Seconds()
	return o
}

func (o *outcomeOf) percentile(share float64) time.Duration {
	if len(o.latency) == 0 {
		return 0
	}
	return o.latency[int(share*float64(len(o.latency)-1))]
}

func modeNames() []string { return []string{"sync", "async", "oneway"} }

func TestWhatIsReportedAddsUp(t *testing.T) { // R-D-143, R-D-144
	p := measured(t, producer.Options{})
	for mode := range modeNames() {
		o := load{mode: producer.Mode(mode), size: 1 << 10, messages: 50}.run(p)
		require.Equal(t, 50, o.stored+o.failed)
		require.Len(t, o.latency, o.stored)
		require.LessOrEqual(t, o.percentile(0.5), o.percentile(0.99))
	}
	s := p.Stats()
	require.Equal(t, s.Begun[0]+s.Begun[1]+s.Begun[2]-s.Failed, s.Sent)
}

func TestASendAllocatesNoMoreThanStated(t *testing.T) { // R-D-142
	p := measured(t, producer.Options{SendTimeout: time.Minute})
	m := msg("T", text(1<<10))
	done := make(chan error, 1)
	for _, tt := range []struct {
		mode string
		most float64 // of docs/performance.md, and some for what runs beside
		send func() error
	}{
		{"sync", 21, func() error {
			_, err := p.Send(context.Background(), m)
			return err
		}},
		{"async", 23, func() error {
			if err := p.Async(context.Background(), m, func(_ producer.Result, err error) { done <- err }); err != nil {
				return err
			}
			return <-done
		}},
		{"oneway", 16, func() error { return p.Oneway(context.Background(), m) }},
	} {
		n := testing.AllocsPerRun(500, func() { require.NoError(t, tt.send()) })
		t.Logf("%s: %v allocations", tt.mode, n)
		require.LessOrEqual(t, n, tt.most, tt.mode)
	}
}

// BenchmarkMatrix is the articles' performance test: message size, mode and rate. One operation is one message; -benchtime 100000x with
// -pause 100ms is the sample's form. R-D-142, R-D-143.
func BenchmarkMatrix(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10} {
		for mode, name := range modeNames() {
			for _, rate := range []int{100, 1000, 10_000, 0} {
				b.Run(fmt.Sprintf("size=%d/mode=%s/rate=%d", size, name, rate), func(b *testing.B) {
					p := measured(b, producer.Options{SendTimeout: 30 * time.Second})
					b.ResetTimer()
					load{mode: producer.Mode(mode), size: size, rate: rate, messages: b.N, pause: *pause}.run(p).report(b)
				})
			}
		}
	}
}

func (o outcomeOf) report(b *testing.B) {
	b.ReportAllocs()
	b.ReportMetric(o.throughput, "msg/s")
	b.ReportMetric(float64(o.stored), "stored")
	b.ReportMetric(float64(o.percentile(0.5).Microseconds()), "p50-µs")
	b.ReportMetric(float64(o.percentile(0.99).Microseconds()), "p99-µs")
}

// BenchmarkOptions shows what each option of a sender is worth: compression, callback workers, the size of a batch, tracing. R-D-142,
// R-A-62.
func BenchmarkOptions(b *testing.B) {
	each := func(name string, o producer.Options, l load) {
		b.Run(name, func(b *testing.B) {
			o.SendTimeout = 30 * time.Second
			p := measured(b, o)
			l.messages = b.N
			b.ResetTimer()
			l.run(p).report(b)
		})
	}
	each("compress=on/size=10240", producer.Options{}, load{size: 10 << 10})
	each("compress=off/size=10240", producer.Options{CompressFrom: -1}, load{size: 10 << 10})
	cpus := runtime.NumCPU()
	each("callbacks=1x", producer.Options{CallbackWorkers: cpus}, load{mode: producer.Async, size: 1 << 10})
	each("callbacks=2x", producer.Options{CallbackWorkers: 2 * cpus}, load{mode: producer.Async, size: 1 << 10})
	each("trace=off", producer.Options{}, load{size: 1 << 10})
	each("trace=on", producer.Options{Trace: true}, load{size: 1 << 10})
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) { benchBatch(b, n) })
	}
}

// benchBatch sends batches of n messages; one operation is one message.
func benchBatch(b *testing.B, n int) {
	p := measured(b, producer.Options{SendTimeout: 30 * time.Second})
	list := make([]*message.Message, n)
	for i := range list {
		list[i] = msg("T", text(1<<10))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for sent := 0; sent < b.N; sent += n {
		if _, err := p.SendBatch(context.Background(), list[:min(n, b.N-sent)]); err != nil {
			b.Fatal(err)
		}
	}
}

func TestOptionsOfSendersHaveTheirEffect(t *testing.T) { // R-D-142, R-D-032
	on, off := measured(t, producer.Options{}), measured(t, producer.Options{CompressFrom: -1})
	body := text(10 << 10)
	for _, p := range []*producer.Producer{on, off} {
		for range 10 {
			_, err := p.Send(context.Background(), msg("T", body))
			require.NoError(t, err)
		}
	}
	require.Less(t, on.Stats().Bytes, off.Stats().Bytes/4, "text that is compressed")
	list := make([]*message.Message, 100)
	for i := range list {
		list[i] = msg("T", "one of many")
	}
	before := on.Stats()
	_, err := on.SendBatch(context.Background(), list)
	require.NoError(t, err)
	after := on.Stats()
	require.EqualValues(t, 100, after.Messages-before.Messages)
	require.EqualValues(t, 1, after.Tries-before.Tries, "a hundred messages, one request")
}
