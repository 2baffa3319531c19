package producer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

func TestASendIsStoredAndTellsWhere(t *testing.T) { // R-D-002, R-D-016, R-D-022, R-D-052, R-D-072, R-D-073
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 4, a)
		p := w.start(producer.Options{})
		m := msg("T", "body")
		m.Flag = 9
		require.NoError(t, m.SetTag("A"))
		before := *m
		r, err := p.Send(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, before, *m) // R-D-031
		require.Equal(t, producer.OK, r.Status)
		require.Len(t, r.MessageID, 32)
		require.Len(t, r.OffsetID, 32)
		require.Equal(t, "T", r.Queue.Topic)
		require.Equal(t, "a", r.Queue.BrokerName)
		require.Equal(t, "DefaultRegion", r.Region)
		require.True(t, r.TraceOn)
		require.EqualValues(t, 1, r.QueueOffset)
		reqs := a.got()
		require.Len(t, reqs, 1)
		f := reqs[0].Fields
		require.Equal(t, remoting.SendMessageV2, reqs[0].Code)
		for name, want := range map[string]string{
			"a": "PG", "b": "T", "c": "TBW102", "d": "4", "f": "0", "h": "9", "j": "0", "k": "false", "m": "false", "n": "a",
			"g": itoa(time.Now().UnixMilli()),
		} {
			require.Equal(t, want, f.Get(name), name)
		}
		require.Equal(t, map[string]string{"TAGS": "A", "WAIT": "true", "UNIQ_KEY": r.MessageID}, properties(reqs[0]))
		require.Equal(t, "body", string(reqs[0].Body))
	})
}

func itoa(n int64) string { return remoting.Int("", n).Value }

func TestQueuesTakeTurns(t *testing.T) { // R-D-043
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 4, a, b)
		p := w.start(producer.Options{})
		count := map[string]int{}
		for range 8 * 5 {
			r, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			count[r.Queue.String()]++
		}
		require.Len(t, count, 8)
		for q, n := range count {
			require.Equal(t, 5, n, q)
		}
	})
}

func TestARetryGoesToAnotherBrokerAndKeepsTheID(t *testing.T) { // R-D-037, R-D-044, R-D-079, R-D-080, R-D-082, R-D-086
	for _, code := range []int32{
		remoting.TopicNotExist, remoting.ServiceNotAvailable, remoting.SystemError, remoting.NoPermission, remoting.NoBuyerID,
		remoting.NotInCurrentUnit,
	} { // R-D-077
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.broker("a"), w.broker("b")
			w.topic("T", 3, a, b)
			p := w.start(producer.Options{})
			a.refuses(code)
			for range 6 {
				r, err := p.Send(t.Context(), msg("T", "x"))
				require.NoError(t, err)
				require.Equal(t, "b", r.Queue.BrokerName)
			}
			require.NotEmpty(t, a.got())
			ids := map[string]bool{}
			for _, req := range b.got() {
				ids[properties(req)["UNIQ_KEY"]] = true
			}
			require.Len(t, ids, 6)
			for _, req := range a.got() {
				require.True(t, ids[properties(req)["UNIQ_KEY"]])
			}
		})
	}
}

func TestOtherCodesEndTheSendAtOnce(t *testing.T) { // R-D-074, R-D-078, R-D-085, R-D-120
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 1, a, b)
		for _, code := range []int32{remoting.MessageIllegal, remoting.SystemBusy, remoting.FlowControl} {
			a.refuses(code)
			b.refuses(code)
			p := w.start(producer.Options{Group: "PG" + itoa(int64(code))})
			before := len(a.got()) + len(b.got())
			_, err := p.Send(t.Context(), msg("T", "x"))
			e, ok := errors.AsType[*producer.BrokerError](err)
			require.True(t, ok)
			require.Equal(t, code, e.Code)
			require.Equal(t, "told to by the test", e.Remark)
			s, ok := errors.AsType[*producer.SendError](err)
			require.True(t, ok)
			require.Equal(t, "T", s.Topic)
			require.Len(t, s.Brokers, 1)
			require.Equal(t, before+1, len(a.got())+len(b.got()))
			require.EqualValues(t, 1, p.Stats().Errors["broker"])
		}
	})
}

func TestTheNewestLineRetriesABusyBroker(t *testing.T) { // R-D-077
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 1, a, b)
		a.refuses(remoting.SystemBusy)
		b.refuses(remoting.GoAway)
		_, err := w.start(producer.Options{Dialect: dialect.V53()}).Send(t.Context(), msg("T", "x"))
		s, ok := errors.AsType[*producer.SendError](err)
		require.True(t, ok)
		require.Equal(t, 3, s.Tries)
		require.Len(t, s.Brokers, 3)
		_, err = w.start(producer.Options{Group: "P2", RetryCodes: []int32{99}}).Send(t.Context(), msg("T", "x"))
		s, ok = errors.AsType[*producer.SendError](err)
		require.True(t, ok)
		require.Equal(t, 1, s.Tries)
	})
}

func TestTheStoreStatusesAreResults(t *testing.T) { // R-D-073, R-D-075, R-D-076
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 1, a, b)
		p := w.start(producer.Options{})
		insistent := w.start(producer.Options{Group: "P2", RetryNotStored: true})
		for code, want := range map[int32]producer.Status{
			remoting.FlushDiskTimeout: producer.FlushDiskTimeout, remoting.FlushSlaveTimeout: producer.FlushSlaveTimeout,
			remoting.SlaveNotAvailable: producer.SlaveNotAvailable,
		} {
			for _, f := range []*fakeBroker{a, b} {
				f.answers(func(req *remoting.Command) *remoting.Command {
					if isSend(req.Code) {
						return f.ok(req, code)
					}
					return nil
				})
			}
			before := len(a.got()) + len(b.got())
			r, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			require.Equal(t, want, r.Status)
			require.Equal(t, before+1, len(a.got())+len(b.got()))
			r, err = insistent.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			require.Equal(t, want, r.Status)
			require.Equal(t, before+4, len(a.got())+len(b.got()))
		}
		b.answers(nil)
		for range 2 {
			r, err := insistent.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			require.Equal(t, producer.OK, r.Status)
		}
		require.EqualValues(t, 3, p.Stats().NotStored)
		require.Equal(t, "SEND_OK FLUSH_DISK_TIMEOUT FLUSH_SLAVE_TIMEOUT SLAVE_NOT_AVAILABLE Status(9)", strings.Join([]string{
			producer.OK.String(), producer.FlushDiskTimeout.String(), producer.FlushSlaveTimeout.String(),
			producer.SlaveNotAvailable.String(), producer.Status(9).String(),
		}, " "))
	})
}

func TestAllTriesShareOneBudget(t *testing.T) { // R-D-063, R-D-081, R-D-089, R-D-091
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 1, a, b)
		silent := func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				return noAnswer
			}
			return nil
		}
		a.answers(silent)
		b.answers(silent)
		p := w.start(producer.Options{})
		began := time.Now()
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began))

		p = w.start(producer.Options{Group: "P2", TryTimeout: time.Second, SendTimeout: 10 * time.Second})
		began = time.Now()
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrTimeout)
		require.Equal(t, 3*time.Second, time.Since(began)) // 1 + 2 tries of a second each
		b.answers(nil)
		for range 2 { // a slow broker costs one try
			r, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			require.Equal(t, "b", r.Queue.BrokerName)
		}
	})
}

func TestACallersEndStopsWaitingAndFurtherTries(t *testing.T) { // R-D-088
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				return noAnswer
			}
			return nil
		})
		p := w.start(producer.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := p.Send(ctx, msg("T", "x"))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, producer.ErrClosed)
		require.Equal(t, time.Second, time.Since(began))
		require.Len(t, a.got(), 1)
		_, err = p.Send(ctx, msg("T", "x"))
		require.ErrorIs(t, err, context.Canceled)
		ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err = p.Send(ctx, msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrTimeout)
		require.Len(t, a.got(), 2)
	})
}

func TestABrokerThatDiesUnderLoadCostsNobodyAMessage(t *testing.T) { // R-D-059, R-D-079, R-D-082, R-D-086
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 4, a, b)
		slow := func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		}
		a.answers(slow)
		b.answers(slow)
		p := w.start(producer.Options{})
		const senders, each = 16, 50
		errs := make(chan error, senders*each)
		ids := make(chan string, senders*each)
		for range senders {
			go func() {
				for range each {
					r, err := p.Send(t.Context(), msg("T", "x"))
					errs <- err
					ids <- r.MessageID
				}
			}()
		}
		time.Sleep(100 * time.Millisecond)
		w.net.Kill(a.addr)
		seen := map[string]bool{}
		for range senders * each {
			require.NoError(t, <-errs)
			seen[<-ids] = true
		}
		require.Len(t, seen, senders*each)
		have := map[string]bool{}
		for _, req := range append(a.got(), b.got()...) {
			have[properties(req)["UNIQ_KEY"]] = true
		}
		require.Len(t, have, senders*each) // a second try had the same id
		require.Greater(t, p.Stats().Tries, int64(senders*each))
	})
}

func TestWithOneBrokerARetryGoesToItAgain(t *testing.T) { // R-D-044
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 2, a)
		first := true
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) && first {
				first = false
				return req.Refuse(remoting.SystemError, "once")
			}
			return nil
		})
		_, err := w.start(producer.Options{}).Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		require.Len(t, a.got(), 2)
	})
}

func TestASlowBrokerIsPassedOver(t *testing.T) { // R-D-045
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 2, a, b)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				time.Sleep(time.Second)
			}
			return nil
		})
		p := w.start(producer.Options{AvoidSlow: true})
		for len(a.got()) == 0 {
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		for range 20 {
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		require.Len(t, a.got(), 1)
		time.Sleep(61 * time.Second) // a second is avoided for a minute
		for range 4 {
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		require.Len(t, a.got(), 2)
		w.net.Kill(b.addr)
		w.net.Kill(a.addr)
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrConnect)
		w.net.Serve(b.addr, b.handle) // all are passed over: the best of them is taken
		for range 3 {
			_, err = p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
	})
}

func TestAMessageNobodyWouldTakeIsRefusedBeforeTheNetwork(t *testing.T) { // R-D-005, R-D-025, R-D-026, R-D-027, R-D-028, R-D-029, R-D-123
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(producer.Options{MaxMessageSize: 100})
		big := msg("T", strings.Repeat("x", 101))
		full := msg("T", "x")
		require.NoError(t, full.SetProperty("p", strings.Repeat("x", 32_767)))
		for _, m := range []*message.Message{
			nil, msg("", "x"), msg("  ", "x"), msg("a b", "x"), msg("ä", "x"), msg("a/b", "x"), msg("a+b", "x"), msg(strings.Repeat("t", 128), "x"),
			msg("TBW102", "x"), msg("SCHEDULE_TOPIC_XXXX", "x"), msg("RMQ_SYS_TRANS_HALF_TOPIC", "x"), msg("SELF_TEST_TOPIC", "x"),
			msg("RMQ_SYS_TRANS_OP_HALF_TOPIC", "x"), msg("TRANS_CHECK_MAX_TIME_TOPIC", "x"), msg("OFFSET_MOVED_EVENT", "x"),
			{Topic: "T"},
			msg("T", ""), big, full,
		} {
			_, err := p.Send(t.Context(), m)
			require.ErrorIs(t, err, producer.ErrInvalidMessage)
			require.ErrorIs(t, p.Oneway(t.Context(), m), producer.ErrInvalidMessage)
			require.ErrorIs(t, p.Async(t.Context(), m, nil), producer.ErrInvalidMessage)
		}
		_, err := p.Send(t.Context(), big)
		require.ErrorIs(t, err, producer.ErrTooLarge)
		require.ErrorContains(t, err, "101 bytes, this producer sends at most 100")
		require.Zero(t, w.net.Dials("ns:9876"))
		a := w.broker("a")
		for _, topic := range []string{"%RETRY%g", "A-b_9|%", strings.Repeat("t", 127)} {
			w.topic(topic, 1, a)
			_, err := p.Send(t.Context(), msg(topic, "\x00\x01\x02\xff"))
			require.NoError(t, err)
		}
	})
}

func TestTheLinesHaveTheirOwnLimits(t *testing.T) { // R-D-029, R-D-061, R-D-083, R-D-092
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		old := w.start(producer.Options{Dialect: dialect.V31(), CompressFrom: -1})
		_, err := old.Send(t.Context(), msg("T", strings.Repeat("x", 128<<10)))
		require.NoError(t, err)
		_, err = old.Send(t.Context(), msg("T", strings.Repeat("x", 128<<10+1)))
		require.ErrorIs(t, err, producer.ErrTooLarge)
		require.Equal(t, remoting.SendMessage, a.got()[0].Code)
		require.Equal(t, "false", a.got()[0].Fields.Get("isUnitMode"))
		now := w.start(producer.Options{Group: "P2", CompressFrom: -1})
		_, err = now.Send(t.Context(), msg("T", strings.Repeat("x", 4<<20)))
		require.NoError(t, err)
		_, err = now.Send(t.Context(), msg("T", strings.Repeat("x", 4<<20+1)))
		require.ErrorIs(t, err, producer.ErrTooLarge)
		require.Equal(t, 128, old.Client().Options().MaxAsync)
		require.Equal(t, 256, old.Client().Options().MaxOneway)
		require.Equal(t, 65_535, now.Client().Options().MaxAsync)
		require.Equal(t, 65_535, now.Client().Options().MaxOneway)
	})
}

func TestABrokerOfTheOldestLineIsSentTheLongForm(t *testing.T) { // R-D-052
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if req.Code == remoting.SendMessageV2 || req.Code == remoting.SendBatchMessage {
				return remoting.NotSupported(req)
			}
			return nil
		})
		p := w.start(producer.Options{Retries: -1})
		for range 3 {
			r, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
			require.Len(t, r.MessageID, 32)
		}
		done := make(chan outcome, 1)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		require.NoError(t, (<-done).err)
		require.Len(t, a.got(remoting.SendMessageV2), 1)
		require.Len(t, a.got(remoting.SendMessage), 4)
		f := a.got(remoting.SendMessage)[0].Fields
		require.Equal(t, "T", f.Get("topic"))
		require.Equal(t, "PG", f.Get("producerGroup"))
		_, err := p.SendBatch(t.Context(), []*message.Message{msg("T", "x")})
		e, ok := errors.AsType[*producer.BrokerError](err)
		require.True(t, ok)
		require.Equal(t, remoting.RequestCodeNotSupported, e.Code)
	})
}

func TestOnewaySendsHaveNoAnswerAndNoSecondTry(t *testing.T) { // R-D-068, R-D-071, R-D-084
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{})
		a.refuses(remoting.SystemError)
		require.NoError(t, p.Oneway(t.Context(), msg("T", "x")))
		synctest.Wait()
		require.Len(t, a.got(), 1)
		require.True(t, a.got()[0].IsOneway())
		w.net.Kill(a.addr)
		synctest.Wait()
		require.ErrorIs(t, p.Oneway(t.Context(), msg("T", "x")), producer.ErrConnect) // not handed over
		require.Equal(t, int64(2), p.Stats().Begun[producer.Oneway])
		require.Equal(t, int64(2), p.Stats().Tries)
	})
}

func TestRoutesThatAreMissingAreNamed(t *testing.T) { // R-D-039, R-D-120
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(producer.Options{})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrNoRoute)
		require.EqualValues(t, 1, p.Stats().Errors["route"])
		a := w.broker("a")
		w.topic("TBW102", 8, a)
		_, err = p.Send(t.Context(), msg("T", "x")) // the broker makes it
		require.NoError(t, err)
		w.net.Kill("ns:9876")
		_, err = p.Send(t.Context(), msg("T", "x")) // what is known stays known
		require.NoError(t, err)
		_, err = p.Send(t.Context(), msg("U", "x"))
		require.ErrorIs(t, err, producer.ErrNoNameServer)
		_, err = producer.New(&producer.Options{Group: "PG"})
		require.ErrorIs(t, err, producer.ErrNoNameServer)
	})
}

func TestASteadyLoadOpensNoNewConnection(t *testing.T) { // R-D-053, R-D-060
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 4, a)
		c, err := producer.NewClient(&producer.ClientOptions{NameServers: []string{"ns:9876"}, Dial: w.net.Dial})
		require.NoError(t, err)
		defer c.Close()
		one, two := w.start(producer.Options{Group: "P1", Client: c}), w.start(producer.Options{Group: "P2", Client: c})
		for range 600 { // a minute
			for _, p := range []*producer.Producer{one, two} {
				_, err := p.Send(t.Context(), msg("T", "x"))
				require.NoError(t, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 1, w.net.Dials(a.addr))
		require.EqualValues(t, 2, one.Stats().Connects) // the name server's too
		same := w.make(producer.Options{Group: "P1", Client: c})
		require.ErrorIs(t, same.Start(t.Context()), producer.ErrDuplicateGroup) // R-D-129
		require.NoError(t, one.Shutdown(t.Context()))
		_, err = two.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		require.NoError(t, two.Shutdown(t.Context()))
		require.Len(t, a.got(remoting.UnregisterClient), 2)
	})
}

func TestNamespacesStayOutOfTheUsersSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("NS%T", 4, a)
		p := w.start(producer.Options{ClientOptions: producer.ClientOptions{Namespace: "NS"}})
		r, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		require.Equal(t, "T", r.Queue.Topic)
		require.Equal(t, "NS%T", a.got()[0].Fields.Get("b"))
		require.Equal(t, "NS%PG", a.got()[0].Fields.Get("a"))
		r, err = p.SendTo(t.Context(), msg("T", "x"), r.Queue)
		require.NoError(t, err)
		q := r.Queue
		r, err = p.SendSelect(t.Context(), msg("T", "x"), func(queues []producer.Queue, _ *message.Message, _ any) (producer.Queue, error) {
			return q, nil
		}, nil)
		require.NoError(t, err)
		require.Equal(t, q, r.Queue)
	})
}

func TestARetryTopicsCountersTravelInTheHeader(t *testing.T) { // R-D-010
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("%RETRY%CG", 1, a)
		m := msg("%RETRY%CG", "x")
		var err error
		m.Properties, err = message.NewProperties("RECONSUME_TIME", "3", "MAX_RECONSUME_TIMES", "16", "RETRY_TOPIC", "T", "DELAY", "6")
		require.NoError(t, err)
		_, err = w.start(producer.Options{}).Send(t.Context(), m)
		require.NoError(t, err)
		req := a.got()[0]
		require.Equal(t, "3", req.Fields.Get("j"))
		require.Equal(t, "16", req.Fields.Get("l"))
		p := properties(req)
		delete(p, "UNIQ_KEY")
		require.Equal(t, map[string]string{"RETRY_TOPIC": "T", "DELAY": "6", "WAIT": "true"}, p)
	})
}

// A message that comes from elsewhere can keep the time at which it was born; else the send is its birth.
func TestABornTimeIsKeptOnRequest(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			b := w.broker("a")
			w.topic("T", 1, b)
			p := w.start(producer.Options{KeepBorn: keep})
			_, err := p.Send(t.Context(), &message.Message{Topic: "T", Body: []byte("x"), BornTimestamp: 1234})
			require.NoError(t, err)
			require.Equal(t, keep, b.got()[0].Fields.Get("g") == "1234")
			_, err = p.Send(t.Context(), &message.Message{Topic: "T", Body: []byte("x")})
			require.NoError(t, err)
			require.NotEqual(t, "0", b.got()[1].Fields.Get("g"))
		})
	}
}
