package producer_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
	"github.com/rocketstore/rocketstore/trace"
)

// traced are the trace messages that a broker got, and the contexts in them.
func traced(t testing.TB, b *fakeBroker, topic string) (reqs []*remoting.Command, list []trace.Context) {
	t.Helper()
	for _, req := range b.got() {
		if req.Fields.Get("b") != topic {
			continue
		}
		reqs = append(reqs, req)
		body, err := client.Decompress(req.Body, flagsOf(t, req), 1<<20)
		require.NoError(t, err)
		for c, err := range trace.Decode(body) {
			require.NoError(t, err)
			list = append(list, c)
		}
	}
	return reqs, list
}

func flagsOf(t testing.TB, req *remoting.Command) message.SysFlag {
	t.Helper()
	f := req.Fields.Reader()
	flags := f.Int32("f")
	require.NoError(t, f.Err())
	return message.SysFlag(flags)
}

// tracedWorld has one broker with the topics T and the default trace topic.
func tracedWorld(t *testing.T) (*world, *fakeBroker) {
	w := newWorld(t)
	a := w.broker("a")
	w.topic("T", 2, a)
	w.topic(trace.Topic, 1, a)
	return w, a
}

func TestATracedSendLeavesARecord(t *testing.T) { // R-A-01, R-A-04, R-A-07, R-A-18, R-A-19, R-A-20, R-A-23, R-A-24, R-A-32, R-A-35, R-A-36, R-A-37, R-A-42, R-A-44, R-A-48, R-D-128
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		p := w.start(producer.Options{Trace: true, TraceTopic: "  ", ClientOptions: producer.ClientOptions{NameServers: []string{"ns:9876"}}})
		m := msg("T", "body")
		require.NoError(t, m.SetTag("A"))
		require.NoError(t, m.SetKeys("k1", "k2"))
		r, err := p.Send(t.Context(), m)
		require.NoError(t, err)
		began := time.Now().UnixMilli()
		time.Sleep(600 * time.Millisecond)
		reqs, list := traced(t, a, trace.Topic)
		require.Len(t, reqs, 1)
		require.Equal(t, []trace.Context{{
			Kind: trace.Pub, Time: began, Region: "DefaultRegion", Group: "PG", Success: true,
			Beans: []trace.Bean{{Topic: "T", MessageID: r.MessageID, OffsetID: r.OffsetID, Tags: "A", Keys: "k1 k2", StoreHost: a.addr, BodyLength: 4}},
		}}, list)
		require.ElementsMatch(t, []string{r.MessageID, "k1", "k2"}, strings.Fields(properties(reqs[0])["KEYS"]))
		require.Regexp(t, `^_INNER_TRACE_PRODUCER-PG-PRODUCE-\d+$`, reqs[0].Fields.Get("a"))
		found := false
		for _, beat := range a.got(remoting.Heartbeat) {
			found = found || strings.Contains(string(beat.Body), `@PID_CLIENT_INNER_TRACE_PRODUCER_ns:9876"`)
		}
		require.True(t, found)
		time.Sleep(time.Minute)
		reqs, _ = traced(t, a, trace.Topic) // what is traced is not traced again
		require.Len(t, reqs, 1)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestWithoutTraceNothingOfItIsThere(t *testing.T) { // R-A-01
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		p := w.start(producer.Options{})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		reqs, _ := traced(t, a, trace.Topic)
		require.Empty(t, reqs)
		for _, beat := range a.got(remoting.Heartbeat) {
			require.NotContains(t, string(beat.Body), "TRACE")
		}
	})
}

// fieldHook adds a field to every request.
type fieldHook struct{}

func (fieldHook) BeforeRequest(_ string, req *remoting.Command)  { req.Fields.Set("hook", "x") }
func (fieldHook) AfterResponse(_ string, _, _ *remoting.Command) {}
func (d *double) Start(context.Context) error                    { d.starts++; return d.fail }
func (d *double) Flush(context.Context)                          {}
func (d *double) Shutdown(context.Context) error                 { d.ends++; return nil }
func (d *double) Append(c *trace.Context) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, c)
	return true
}

// double is a dispatcher of a test.
type double struct {
	mu           sync.Mutex
	list         []*trace.Context
	starts, ends int
	fail         error
}

func TestACustomTopicAndTheHooksReachTheTracesOwnProducer(t *testing.T) { // R-A-02, R-A-03, R-A-05
	for name, o := range map[string]producer.Options{
		"group":                    {},
		"trace":                    {Trace: true},
		"trace and topic":          {Trace: true, TraceTopic: "mine"},
		"trace and topic and hook": {Trace: true, TraceTopic: "mine", ClientOptions: producer.ClientOptions{Hooks: []producer.RPCHook{fieldHook{}}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, a := tracedWorld(t)
			w.topic("mine", 1, a)
			p := w.start(o)
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			require.NoError(t, p.Shutdown(t.Context()))
			standard, _ := traced(t, a, trace.Topic)
			custom, _ := traced(t, a, "mine")
			switch {
			case !o.Trace:
				require.Empty(t, standard, name)
				require.Empty(t, custom, name)
			case o.TraceTopic == "":
				require.Len(t, standard, 1, name)
			default:
				require.Empty(t, standard, name)
				require.Len(t, custom, 1, name)
				if o.ClientOptions.Hooks != nil {
					require.Equal(t, "x", custom[0].Fields.Get("hook"))
				}
			}
		})
	}
}

func TestWhatIsNotTraced(t *testing.T) { // R-A-22, R-A-27, R-A-29, R-A-30, R-A-31, R-A-32
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		w.topic(trace.Topic+"2", 1, a)
		d := &double{}
		p := w.start(producer.Options{Trace: true, Dispatcher: d}) // R-A-10
		require.Equal(t, 1, d.starts)
		_, err := p.Send(t.Context(), msg(trace.Topic+"2", "x"))
		require.NoError(t, err)
		require.NoError(t, p.Oneway(t.Context(), msg("T", "x")))
		a.refuses(remoting.MessageIllegal)
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.Error(t, err)
		for _, on := range []string{"false", "False", ""} {
			a.answers(func(req *remoting.Command) *remoting.Command {
				if !isSend(req.Code) {
					return nil
				}
				resp := a.ok(req, remoting.Success)
				resp.Fields.Delete("MSG_REGION")
				resp.Fields.Set("TRACE_ON", on)
				return resp
			})
			_, err = p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		require.Len(t, d.list, 2)
		for _, c := range d.list {
			require.Equal(t, "DefaultRegion", c.Region)
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, 1, d.ends)
	})
}

func TestTheRecordsFields(t *testing.T) { // R-A-25, R-A-26, R-A-33, R-A-34, R-A-35, R-A-38
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		d := &double{}
		p := w.start(producer.Options{Trace: true, Dispatcher: d, TraceErrors: true})
		last := func() *trace.Context { return d.list[len(d.list)-1] }
		long := strings.Repeat("x", 5000)
		_, err := p.Send(t.Context(), msg("T", long))
		require.NoError(t, err)
		require.Less(t, last().Beans[0].BodyLength, 1000) // as it was sent
		_, err = p.Send(t.Context(), msg("T", long[:100]))
		require.NoError(t, err)
		require.Equal(t, 100, last().Beans[0].BodyLength)
		delayed := msg("T", "x")
		delayed.SetDelayLevel(1)
		_, err = p.Send(t.Context(), delayed)
		require.NoError(t, err)
		require.Equal(t, trace.Delay, last().Beans[0].Type)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if !isSend(req.Code) {
				return nil
			}
			time.Sleep(31 * time.Millisecond)
			return a.ok(req, remoting.SlaveNotAvailable)
		})
		r, err := p.SendBatch(t.Context(), []*message.Message{msg("T", "1"), msg("T", "2")})
		require.NoError(t, err)
		c := last()
		require.Len(t, c.Beans, 1)
		require.Equal(t, r.MessageID, c.Beans[0].MessageID)
		require.Contains(t, c.Beans[0].MessageID, ",")
		require.EqualValues(t, 31, c.Cost)
		require.Equal(t, c.Time+15, c.Beans[0].StoreTime)
		require.False(t, c.Success)
		a.refuses(remoting.MessageIllegal)
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.Error(t, err)
		require.False(t, last().Success)
		a.answers(nil)
		_, err = p.SendInTransactionBy(t.Context(), msg("T", "x"), func(context.Context, *message.Message, producer.Result, any) (producer.TransactionState, error) {
			require.Equal(t, trace.Half, last().Beans[0].Type)
			return producer.Commit, nil
		}, nil)
		require.NoError(t, err)
		end := last()
		require.Equal(t, trace.EndTransaction, end.Kind) // R-A-53
		require.Equal(t, trace.Commit, end.Beans[0].Type)
		require.Equal(t, "COMMIT_MESSAGE", end.Beans[0].State)
		require.Equal(t, "DefaultRegion", end.Region)
	})
}

func TestATraceThatCannotBeSetUpLeavesTheProducer(t *testing.T) { // R-A-06, R-A-42
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		d := &double{fail: errors.New("cannot start")}
		p := w.start(producer.Options{Trace: true, Dispatcher: d, Logger: logger})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(log.String(), "cannot start"))
		require.Len(t, a.got(), 1)
		_, err = producer.NewAsyncDispatcher("PG", producer.TraceOptions{})
		require.ErrorIs(t, err, producer.ErrOptions)
	})
}

// dispatcher makes an asynchronous one in the world.
func (w *world) dispatcher(o producer.TraceOptions) *producer.AsyncDispatcher {
	w.t.Helper()
	o.ClientOptions = &producer.ClientOptions{NameServers: []string{"ns:9876"}, Dial: w.net.Dial}
	d, err := producer.NewAsyncDispatcher("PG", o)
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.Shutdown(ctx) // a test that cares has done it
	})
	return d
}

func note(topic, id string) *trace.Context {
	return &trace.Context{Kind: trace.Pub, Beans: []trace.Bean{{Topic: topic, MessageID: id}}}
}

func TestContextsAreGatheredBySizeCountTopicAndTime(t *testing.T) { // R-A-11, R-A-12, R-A-17, R-A-43, R-A-44, R-A-46, R-A-47, R-A-49
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		d := w.dispatcher(producer.TraceOptions{})
		require.True(t, d.Append(note("T", "early"))) // before the start: kept
		require.NoError(t, d.Start(t.Context()))
		require.NoError(t, d.Start(t.Context())) // R-A-41
		time.Sleep(499 * time.Millisecond)
		require.Empty(t, a.got())
		time.Sleep(10 * time.Millisecond)
		require.Len(t, a.got(), 1)
		for range 250 {
			require.True(t, d.Append(note("T", "x")))
		}
		synctest.Wait()
		require.Len(t, a.got(), 3) // two full hundreds leave at once
		d.Flush(t.Context())
		require.Len(t, a.got(), 4)
		require.True(t, d.Append(note("T", "x")))
		require.True(t, d.Append(note("U", "x")))
		d.Flush(t.Context())
		require.Len(t, a.got(), 6) // one for each topic
		big := strings.Repeat("k", 50_000)
		for range 5 {
			require.True(t, d.Append(note("T", big)))
		}
		require.True(t, d.Append(note("T", strings.Repeat("k", 118_000)))) // larger than a trace message
		d.Flush(t.Context())
		reqs, list := traced(t, a, trace.Topic)
		for _, req := range reqs {
			body, err := client.Decompress(req.Body, flagsOf(t, req), 1<<20)
			require.NoError(t, err)
			require.LessOrEqual(t, len(body), 118_000)
		}
		require.Len(t, list, 1+250+2)
		require.EqualValues(t, 6, d.Discarded()) // the keys of the five do not fit a record's properties
		require.NoError(t, d.Shutdown(t.Context()))
		require.NoError(t, d.Shutdown(t.Context())) // R-A-58
		require.False(t, d.Append(note("T", "x")))
		require.EqualValues(t, 7, d.Discarded())
		require.ErrorIs(t, d.Start(t.Context()), producer.ErrClosed)
	})
}

func TestAFullQueueDiscardsAtOnceAndCounts(t *testing.T) { // R-A-13, R-A-16, R-A-39
	synctest.Test(t, func(t *testing.T) {
		w, _ := tracedWorld(t)
		d := w.dispatcher(producer.TraceOptions{}) // not started: nobody takes
		began := time.Now()
		for range 1024 {
			require.True(t, d.Append(note("T", "x")))
		}
		for range 10 {
			require.False(t, d.Append(note("T", "x")))
		}
		require.Zero(t, time.Since(began))
		require.EqualValues(t, 10, d.Discarded())
	})
}

// gate is an RPC hook that holds sends up while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{}
}

func (g *gate) set(c chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = c
}

func (g *gate) BeforeRequest(_ string, req *remoting.Command) {
	g.mu.Lock()
	c := g.shut
	g.mu.Unlock()
	if c != nil && isSend(req.Code) {
		<-c
	}
}

func (g *gate) AfterResponse(string, *remoting.Command, *remoting.Command) {}

func TestAFullPoolDiscardsAndTheWorkerLivesOn(t *testing.T) { // R-A-14, R-A-15, R-A-45
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		g := &gate{}
		o := producer.TraceOptions{BatchSize: 1, PoolQueue: 2, Workers: 1, MaxWorkers: 2}
		o.ClientOptions = &producer.ClientOptions{NameServers: []string{"ns:9876"}, Dial: w.net.Dial, Hooks: []producer.RPCHook{g}}
		d, err := producer.NewAsyncDispatcher("PG", o)
		require.NoError(t, err)
		require.NoError(t, d.Start(t.Context()))
		require.True(t, d.Append(note("T", "x")))
		synctest.Wait()
		require.Len(t, a.got(), 1)
		hold := make(chan struct{})
		g.set(hold)
		for range 10 { // one runs, two wait, a second one runs; for the rest there is no room
			require.True(t, d.Append(note("T", "x")))
			synctest.Wait()
		}
		require.EqualValues(t, 6, d.Discarded())
		g.set(nil)
		close(hold)
		synctest.Wait()
		require.True(t, d.Append(note("T", "x")))
		synctest.Wait()
		require.Len(t, a.got(), 6)
		require.EqualValues(t, 6, d.Discarded())
		require.NoError(t, d.Shutdown(t.Context()))
	})
}

func TestAFlushWaitsNoLongerThanItMay(t *testing.T) { // R-A-55, R-A-57
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		hold := make(chan struct{})
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				<-hold
			}
			return nil
		})
		d := w.dispatcher(producer.TraceOptions{BatchSize: 1, SendTimeout: time.Hour})
		require.NoError(t, d.Start(t.Context()))
		for range 100 { // the trace messages wait for answers; the workers do not
			require.True(t, d.Append(note("T", "x")))
			synctest.Wait()
		}
		began := time.Now()
		d.Flush(t.Context())
		require.Equal(t, 500*time.Millisecond, time.Since(began))
		close(hold)
		synctest.Wait()
		_, list := traced(t, a, trace.Topic)
		require.Len(t, list, 100)

		w.net.Kill("ns:9876")
		w.net.Silence("ns:9876", true)
		lost := w.dispatcher(producer.TraceOptions{BatchSize: 1, Topic: "unknown"})
		require.NoError(t, lost.Start(t.Context()))
		require.True(t, lost.Append(note("T", "x")))
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, lost.Discarded())
		require.NoError(t, lost.Shutdown(t.Context()))
	})
}

func TestTracingUnderManySendersLosesNothing(t *testing.T) { // R-A-40, R-A-60, R-A-61
	synctest.Test(t, func(t *testing.T) {
		w, a := tracedWorld(t)
		p := w.start(producer.Options{Trace: true, TraceOptions: producer.TraceOptions{Linger: 5 * time.Millisecond}})
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for range 5 {
					if _, err := p.Send(t.Context(), msg("T", "x")); err != nil {
						t.Error(err)
					}
					done := make(chan outcome, 1)
					if err := p.Async(t.Context(), msg("T", "x"), into(done)); err != nil {
						t.Error(err)
					}
					<-done
				}
			})
		}
		all.Wait()
		require.NoError(t, p.Shutdown(t.Context()))
		_, list := traced(t, a, trace.Topic)
		require.EqualValues(t, 640, int64(len(list))+p.Stats().TraceDiscarded)
		require.Zero(t, p.Stats().TraceDiscarded)
	})
}

func TestTheTracingHookMindsNoMissingThings(t *testing.T) { // R-A-21, R-A-28, R-A-29
	hook := producer.TracingHook(&double{})
	require.NoError(t, hook.BeforeSend(nil))
	require.NoError(t, hook.AfterSend(nil))
	c := &producer.SendContext{Topic: "T"}
	require.NoError(t, hook.AfterSend(c))
	require.NoError(t, hook.BeforeSend(c))
	require.Zero(t, c.Trace.Beans[0].BodyLength)
	require.NoError(t, hook.AfterSend(c))
	require.Equal(t, "trace", hook.Name())
}
