package producer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
	"github.com/rocketstore/rocketstore/trace"
)

func TestAnAsyncSendBeforeTheConnectionHasOneTurnAndOneChoice(t *testing.T) { // R-D-043, R-D-106
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 4, a)
		p := w.start(producer.Options{})
		_, err := p.Client().Route(t.Context(), "T", nil) // known, but there is no connection yet
		require.NoError(t, err)
		done := make(chan outcome, 16)
		for range 8 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		}
		var asked atomic.Int64
		choose := func(queues []producer.Queue, _ *message.Message, _ any) (producer.Queue, error) {
			asked.Add(1)
			return queues[2], nil
		}
		for range 8 {
			require.NoError(t, p.AsyncSelect(t.Context(), msg("T", "x"), choose, nil, into(done)))
		}
		queues := map[int32]int{}
		for range 16 {
			o := <-done
			require.NoError(t, o.err)
			queues[o.result.Queue.QueueID]++
		}
		require.Equal(t, map[int32]int{0: 2, 1: 2, 2: 2 + 8, 3: 2}, queues)
		require.EqualValues(t, 8, asked.Load())
	})
}

// shy is a hook that panics when it is asked for its name too.
type shy struct{ SendHooks }

// SendHooks are the rest of it.
type SendHooks struct{}

func (SendHooks) BeforeSend(*producer.SendContext) error { panic("before") }
func (SendHooks) AfterSend(*producer.SendContext) error  { return errors.New("after") }
func (shy) Name() string                                 { panic("name") }

func TestWhatIsMissingIsToldOrDoneWithout(t *testing.T) { // R-D-108, R-A-09
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{Hooks: []producer.SendHook{shy{}}})
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), nil))
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		_, err = p.SendSelect(t.Context(), msg("T", "x"), nil, nil)
		require.ErrorIs(t, err, producer.ErrSelector)
		require.ErrorIs(t, p.OnewaySelect(t.Context(), msg("T", "x"), nil, nil), producer.ErrSelector)
		done := make(chan outcome, 1)
		require.NoError(t, p.AsyncSelect(t.Context(), msg("T", "x"), nil, nil, into(done)))
		require.ErrorIs(t, (<-done).err, producer.ErrSelector)
		synctest.Wait()
		require.Len(t, a.got(), 2)
		require.NoError(t, p.Shutdown(t.Context()))
	})
	for name, o := range map[string]producer.Options{
		"a hook is nil": {Hooks: []producer.SendHook{nil}},
		"the steps of Latency are not in ascending order": {Latency: []producer.LatencyStep{{From: 2}, {From: 1}}},
		"CallbackWorkers is negative":                     {CallbackWorkers: -1},
		"ClientOptions: a hook is nil":                    {ClientOptions: producer.ClientOptions{Hooks: []producer.RPCHook{nil}}},
		"CompressLevel 10 is not from -1":                 {CompressLevel: 10},
		`group "" is not a name of one's own`:             {Group: "-"},
	} {
		o.NameServers = []string{"ns:9876"}
		if o.Group == "" {
			o.Group = "PG"
		} else {
			o.Group = ""
		}
		_, err := producer.New(&o)
		require.ErrorIs(t, err, producer.ErrOptions, name)
		require.ErrorContains(t, err, strings.TrimPrefix(name, "ClientOptions: "))
	}
	_, err := producer.New(nil)
	require.ErrorIs(t, err, producer.ErrOptions)
}

func TestATracesOptionsMustLetItWork(t *testing.T) { // R-A-12
	connect := &producer.ClientOptions{NameServers: []string{"ns:9876"}}
	for name, o := range map[string]producer.TraceOptions{
		"QueueSize": {QueueSize: -1}, "PoolQueue": {PoolQueue: -1}, "Workers": {Workers: -1}, "MaxWorkers": {MaxWorkers: -1},
		"BatchSize": {BatchSize: -1}, "MaxBytes": {MaxBytes: -1}, "Linger": {Linger: -1}, "SendTimeout": {SendTimeout: -1}, "FlushTimeout": {FlushTimeout: -1},
	} {
		o.ClientOptions = connect
		_, err := producer.NewAsyncDispatcher("PG", o)
		require.ErrorIs(t, err, producer.ErrOptions)
		require.ErrorContains(t, err, name+" is negative")
	}
	_, err := producer.NewAsyncDispatcher("PG", producer.TraceOptions{})
	require.ErrorIs(t, err, producer.ErrOptions)
}

func TestWhatADispatcherNeverSentCountsAsDiscarded(t *testing.T) { // R-A-16, R-A-58
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		d, err := producer.NewAsyncDispatcher("PG", producer.TraceOptions{ClientOptions: &producer.ClientOptions{NameServers: []string{"ns:9876"}, Dial: w.net.Dial}})
		require.NoError(t, err)
		for range 3 {
			require.True(t, d.Append(&trace.Context{Beans: []trace.Bean{{Topic: "T"}}}))
		}
		require.NoError(t, d.Shutdown(t.Context())) // it was never started
		require.EqualValues(t, 3, d.Discarded())
		require.False(t, d.Append(&trace.Context{}))
		require.EqualValues(t, 4, d.Discarded())
		require.ErrorIs(t, d.Start(t.Context()), producer.ErrClosed)
	})
}

func TestABatchIsLimitedAsItIsSent(t *testing.T) { // R-D-096, R-D-123
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{MaxMessageSize: 10_000})
		var small []*message.Message
		for range 1000 { // bodies of a thousand bytes; with properties and headers they are a hundred thousand
			small = append(small, msg("T", "x"))
		}
		_, err := p.SendBatch(t.Context(), small)
		require.ErrorIs(t, err, producer.ErrTooLarge)
		require.ErrorContains(t, err, "10000 bytes")
		require.Empty(t, a.got())
		sent := 0
		for batch := range producer.Split(small, 10_000) {
			_, err := p.SendBatch(t.Context(), batch)
			require.NoError(t, err)
			sent += len(batch)
		}
		require.Equal(t, 1000, sent)
	})
}

// jumpy is an RPC hook that panics.
type jumpy struct{}

func (jumpy) BeforeRequest(string, *remoting.Command)                    { panic("before") }
func (jumpy) AfterResponse(string, *remoting.Command, *remoting.Command) { panic("after") }

func TestAnRPCHooksPanicHarmsNoSend(t *testing.T) { // R-A-09, R-D-065
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("T", 1, w.broker("a"))
		p := w.start(producer.Options{ClientOptions: producer.ClientOptions{NameServers: []string{"ns:9876"}, Hooks: []producer.RPCHook{jumpy{}}}})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		done := make(chan outcome, 2)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		require.NoError(t, (<-done).err)
		time.Sleep(time.Minute) // heartbeats go on
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		require.NoError(t, (<-done).err)
	})
}

func TestSendsOutliveTheirNameServer(t *testing.T) { // R-D-041, R-D-120, R-D-132
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 1, a)
		p := w.start(producer.Options{SendTimeout: 10 * time.Second})
		send := func(topic string) error {
			_, err := p.Send(t.Context(), msg(topic, "x"))
			return err
		}
		require.NoError(t, send("T"))
		w.net.Kill("ns:9876")
		time.Sleep(5 * time.Minute) // ten refreshes fail
		require.NoError(t, send("T"))
		require.ErrorIs(t, send("U"), producer.ErrNoNameServer)
		w.names = w.net.ServeNames("ns:9876")
		w.topic("T", 1, b) // the broker moved meanwhile
		w.topic("U", 1, b)
		require.NoError(t, send("U"))
		time.Sleep(time.Minute)
		before := len(b.got())
		require.NoError(t, send("T"))
		require.Len(t, b.got(), before+1)
	})
}

func TestARouteThatLosesItsQueuesOrItsBroker(t *testing.T) { // R-D-040, R-D-120, R-D-131
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 1, a, b)
		p := w.start(producer.Options{})
		for range 4 {
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		w.topic("T", 1, b) // a left
		w.net.Kill(a.addr)
		for range 4 { // before the producer knows
			r, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			require.Equal(t, "b", r.Queue.BrokerName)
		}
		time.Sleep(time.Minute)
		require.Len(t, b.got(), 2+4)
		_, err := p.SendTo(t.Context(), msg("T", "x"), producer.Queue{Topic: "T", BrokerName: "a"})
		require.Error(t, err)
		w.topic("T", 0, b)
		time.Sleep(time.Minute)
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrNoRoute)
		done := make(chan outcome, 1)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		require.ErrorIs(t, (<-done).err, producer.ErrNoRoute)
		require.ErrorIs(t, p.Oneway(t.Context(), msg("T", "x")), producer.ErrNoRoute)
		w.topic("T", 2, b)
		time.Sleep(time.Minute)
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
	})
}

// stage is where a send waits when its context ends.
type stage struct {
	name  string
	setup func(w *world, a *fakeBroker)
}

func stages() []stage {
	return []stage{
		{"route", func(w *world, _ *fakeBroker) { w.net.Silence("ns:9876", true) }},
		{"connect", func(w *world, a *fakeBroker) { w.net.Silence(a.addr, true) }},
		{"answer", func(_ *world, a *fakeBroker) {
			a.answers(func(req *remoting.Command) *remoting.Command {
				if isSend(req.Code) {
					return noAnswer
				}
				return nil
			})
		}},
		{"heartbeat", func(_ *world, a *fakeBroker) {
			a.answers(func(*remoting.Command) *remoting.Command { return noAnswer })
		}},
	}
}

func TestACancelledContextEndsASendAtEachStage(t *testing.T) { // R-D-088
	for _, s := range stages() {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s early=%t", s.name, early), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					a := w.broker("a")
					w.topic("T", 1, a)
					s.setup(w, a)
					p := w.start(producer.Options{SendTimeout: time.Hour, ClientOptions: producer.ClientOptions{
						NameServers: []string{"ns:9876"}, ConnectTimeout: time.Hour,
					}})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if early {
						cancel()
					}
					done, began := make(chan outcome, 2), time.Now()
					go func() {
						_, err := p.Send(ctx, msg("T", "x"))
						done <- outcome{err: err}
					}()
					require.NoError(t, p.Async(ctx, msg("T", "x"), into(done)))
					if !early {
						time.AfterFunc(time.Second, cancel)
					}
					for range 2 {
						require.ErrorIs(t, (<-done).err, context.Canceled)
					}
					require.LessOrEqual(t, time.Since(began), time.Second)
					require.Zero(t, p.Stats().Sent)
					require.NoError(t, p.Shutdown(t.Context()))
					require.LessOrEqual(t, time.Since(began), 5*time.Second)
				})
			})
		}
	}
}

func TestPropertiesThatDoNotFitAreRefusedAndReservedNamesTravel(t *testing.T) { // R-D-004, R-D-012, R-D-120
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{})
		m := msg("T", "x")
		require.NoError(t, m.SetProperty("large", strings.Repeat("v", 32_767-len("large\x01\x02UNIQ_KEY\x01\x02WAIT\x01true")-32)))
		_, err := p.Send(t.Context(), m)
		require.NoError(t, err, "as large as a record has room for")
		require.NoError(t, m.SetProperty("large", m.Property("large")+"v"))
		_, err = p.Send(t.Context(), m)
		require.ErrorIs(t, err, producer.ErrTooLarge)
		require.ErrorContains(t, err, "32767")
		_, err = p.SendBatch(t.Context(), []*message.Message{msg("T", "x"), m})
		require.ErrorIs(t, err, producer.ErrTooLarge)
		require.ErrorIs(t, p.Async(t.Context(), m, nil), producer.ErrTooLarge)

		m = msg("T", "x")
		for _, name := range []string{"KEYS", "TAGS", "UNIQ_KEY", "DELAY", "PGROUP", "TRAN_MSG", "MSG_REGION", "WAIT"} {
			require.Error(t, m.SetProperty(name, "v"), name)
		}
		m.Properties, err = message.NewProperties("UNIQ_KEY", "mine", "MSG_REGION", "elsewhere", "WAIT", "false", "own", "v")
		require.NoError(t, err)
		r, err := p.Send(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, "mine", r.MessageID)
		sent := a.got()
		require.Equal(t, map[string]string{"UNIQ_KEY": "mine", "MSG_REGION": "elsewhere", "WAIT": "false", "own": "v"}, properties(sent[len(sent)-1]))
	})
}

func TestACheckWithoutAListenerOrOfAnUnknownTransactionIsLeftOpen(t *testing.T) { // R-D-115
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		l := &listener{check: func(*message.Received) (producer.TransactionState, error) { return 0, errors.New("never heard of it") }}
		p := w.start(producer.Options{Listener: l})
		q := w.start(producer.Options{Group: "P2"})
		for _, one := range []*producer.Producer{p, q} {
			_, err := one.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			require.NoError(t, a.conn().Oneway(t.Context(), checkOf(t, one.Group())))
			synctest.Wait()
		}
		ends := a.got(remoting.EndTransaction)
		require.Len(t, ends, 2)
		for i, remark := range []string{"never heard of it", producer.ErrNoListener.Error()} {
			require.Equal(t, "0", ends[i].Fields.Get("commitOrRollback"))
			require.Equal(t, "true", ends[i].Fields.Get("fromTransactionCheck"))
			require.Contains(t, ends[i].Remark, remark)
		}
	})
}
