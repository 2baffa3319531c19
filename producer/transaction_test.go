package producer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

// listener answers what a test says.
type listener struct {
	mu      sync.Mutex
	execute func(m *message.Message, r producer.Result, arg any) (producer.TransactionState, error)
	check   func(m *message.Received) (producer.TransactionState, error)
}

func (l *listener) Execute(_ context.Context, m *message.Message, r producer.Result, arg any) (producer.TransactionState, error) {
	return l.execute(m, r, arg)
}

func (l *listener) Check(_ context.Context, m *message.Received) (producer.TransactionState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.check(m)
}

func TestATransactionsMessageIsPreparedAndThenDecided(t *testing.T) { // R-D-006, R-D-036, R-D-113, R-D-114
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		l := &listener{}
		p := w.start(producer.Options{Listener: l})
		for _, tt := range []struct {
			name   string
			answer func() (producer.TransactionState, error)
			want   producer.TransactionState
			remark string
		}{
			{"commit", func() (producer.TransactionState, error) { return producer.Commit, nil }, producer.Commit, ""},
			{"rollback", func() (producer.TransactionState, error) { return producer.Rollback, nil }, producer.Rollback, ""},
			{"nothing", func() (producer.TransactionState, error) { return 0, nil }, producer.Unknown, ""},
			{"nonsense", func() (producer.TransactionState, error) { return 5, nil }, producer.Unknown, ""},
			{"error", func() (producer.TransactionState, error) { return producer.Commit, errors.New("no money") }, producer.Unknown, "no money"},
			{"panic", func() (producer.TransactionState, error) { panic("no luck") }, producer.Unknown, "no luck"},
		} {
			before := len(a.got(remoting.EndTransaction))
			l.execute = func(m *message.Message, r producer.Result, arg any) (producer.TransactionState, error) {
				require.Equal(t, "arg", arg)
				require.Len(t, r.MessageID, 32)
				require.Equal(t, "body", string(m.Body))
				return tt.answer()
			}
			m := msg("T", "body")
			m.SetDelayLevel(4)
			r, err := p.SendInTransaction(t.Context(), m, "arg")
			require.NoError(t, err, tt.name)
			require.Equal(t, tt.want, r.State, tt.name)
			require.Equal(t, r.MessageID, r.TransactionID)
			require.Equal(t, 4, m.DelayLevel()) // the user's message is not touched
			synctest.Wait()
			sent := a.got(remoting.SendMessageV2)
			half := sent[len(sent)-1]
			require.Equal(t, "4", half.Fields.Get("f"))
			require.Equal(t, map[string]string{"TRAN_MSG": "true", "PGROUP": "PG", "WAIT": "true", "UNIQ_KEY": r.MessageID}, properties(half))
			ends := a.got(remoting.EndTransaction)
			require.Len(t, ends, before+1)
			end := ends[before]
			require.True(t, end.IsOneway())
			require.Contains(t, end.Remark, tt.remark)
			_, offset, err := message.ParseOffsetID(r.OffsetID)
			require.NoError(t, err)
			for name, want := range map[string]string{
				"producerGroup": "PG", "tranStateTableOffset": itoa(r.QueueOffset), "commitLogOffset": itoa(offset), "commitOrRollback": itoa(int64(tt.want)),
				"fromTransactionCheck": "false", "msgId": r.MessageID, "bname": "a",
			} {
				require.Equal(t, want, end.Fields.Get(name), name)
			}
		}
	})
}

func TestAMessageThatMayNotSurviveIsRolledBack(t *testing.T) { // R-D-113, R-D-116
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				return a.ok(req, remoting.FlushDiskTimeout)
			}
			return nil
		})
		p := w.start(producer.Options{})
		_, err := p.SendInTransaction(t.Context(), msg("T", "x"), nil)
		require.ErrorIs(t, err, producer.ErrNoListener)
		_, err = p.SendInTransactionBy(t.Context(), msg("T", "x"), nil, nil)
		require.ErrorIs(t, err, producer.ErrNoListener)
		require.Empty(t, a.got())
		ran := false
		execute := func(context.Context, *message.Message, producer.Result, any) (producer.TransactionState, error) {
			ran = true
			return producer.Commit, nil
		}
		r, err := p.SendInTransactionBy(t.Context(), msg("T", "x"), execute, nil)
		require.NoError(t, err)
		require.Equal(t, producer.Rollback, r.State)
		require.False(t, ran)
		a.refuses(remoting.MessageIllegal)
		_, err = p.SendInTransactionBy(t.Context(), msg("T", "x"), execute, nil)
		require.Error(t, err)
		_, err = p.SendInTransactionBy(t.Context(), msg("T", ""), execute, nil)
		require.ErrorIs(t, err, producer.ErrInvalidMessage)
		require.False(t, ran)
		a.answers(nil)
		execute = func(context.Context, *message.Message, producer.Result, any) (producer.TransactionState, error) {
			w.net.Kill(a.addr)
			return producer.Commit, nil
		}
		r, err = p.SendInTransactionBy(t.Context(), msg("T", "x"), execute, nil)
		require.NoError(t, err) // the end is lost; a check will ask
		require.Equal(t, producer.Commit, r.State)
		require.Equal(t, "COMMIT_MESSAGE ROLLBACK_MESSAGE UNKNOW", producer.Commit.String()+" "+producer.Rollback.String()+" "+producer.Unknown.String())
	})
}

// checkOf is a broker's question for a prepared message.
func checkOf(t testing.TB, group string) *remoting.Command {
	t.Helper()
	p, err := message.NewProperties("TRAN_MSG", "true", "PGROUP", group, "UNIQ_KEY", "U")
	require.NoError(t, err)
	host, err := message.ParseHost("10.0.0.1:10911")
	require.NoError(t, err)
	r := commitlog.Record{
		Magic: commitlog.MagicV1, Topic: []byte("T"), Body: []byte("body"), BodyCRC: message.CRC([]byte("body")), Properties: []byte(p),
		BornHost: host, StoreHost: host, PhysicalOffset: 999,
	}
	req := remoting.NewRequest(remoting.CheckTransactionState, remoting.Int("tranStateTableOffset", 7), remoting.Int("commitLogOffset", 4145),
		remoting.String("transactionId", "U"))
	req.Body = r.AppendTo(nil)
	return req
}

func TestACheckIsAnsweredWithWhatTheListenerFinds(t *testing.T) { // R-D-115
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		l := &listener{}
		p := w.start(producer.Options{Listener: l})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		ask := func() *remoting.Command {
			before := len(a.got(remoting.EndTransaction))
			require.NoError(t, a.conn().Oneway(t.Context(), checkOf(t, "PG")))
			synctest.Wait()
			ends := a.got(remoting.EndTransaction)
			require.Len(t, ends, before+1)
			return ends[before]
		}
		l.check = func(m *message.Received) (producer.TransactionState, error) {
			require.Equal(t, "U", m.ID())
			require.Equal(t, "body", string(m.Body))
			return producer.Commit, nil
		}
		end := ask()
		for name, want := range map[string]string{
			"producerGroup": "PG", "tranStateTableOffset": "7", "commitLogOffset": "4145", "commitOrRollback": "8", "fromTransactionCheck": "true",
			"msgId": "U", "transactionId": "U",
		} {
			require.Equal(t, want, end.Fields.Get(name), name)
		}
		require.True(t, end.IsOneway())
		l.check = func(*message.Received) (producer.TransactionState, error) {
			return producer.Commit, errors.New("ask again")
		}
		end = ask()
		require.Equal(t, "0", end.Fields.Get("commitOrRollback"))
		require.Contains(t, end.Remark, "ask again")
		l.check = func(*message.Received) (producer.TransactionState, error) { panic("broken") }
		require.Contains(t, ask().Remark, "broken")
		require.EqualValues(t, 3, p.Stats().Checks)

		bare := checkOf(t, "PG")
		bare.Fields = nil // cannot be answered
		require.NoError(t, a.conn().Oneway(t.Context(), bare))
		synctest.Wait()
		require.Len(t, a.got(remoting.EndTransaction), 3)
	})
}

func TestChecksWaitOnAPoolOfTheirOwn(t *testing.T) { // R-D-115
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		l := &listener{}
		l.check = func(*message.Received) (producer.TransactionState, error) {
			time.Sleep(time.Second)
			return producer.Rollback, nil
		}
		p := w.start(producer.Options{Listener: l, CheckQueue: 2})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		for range 5 { // one runs, two wait, two are dropped
			require.NoError(t, a.conn().Oneway(t.Context(), checkOf(t, "PG")))
			synctest.Wait()
		}
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.Len(t, a.got(remoting.EndTransaction), 3)
		none := w.start(producer.Options{Group: "P2"})
		_, err = none.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		require.NoError(t, a.conn().Oneway(t.Context(), checkOf(t, "P2")))
		synctest.Wait()
		ends := a.got(remoting.EndTransaction)
		require.Equal(t, "0", ends[3].Fields.Get("commitOrRollback"))
		require.NoError(t, a.conn().Oneway(t.Context(), checkOf(t, "PG")))
		synctest.Wait()
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestARequestGetsItsReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if !isSend(req.Code) {
				return nil
			}
			asked := properties(req)
			if asked["mode"] == "silent" {
				return nil
			}
			require.NotEmpty(t, a.got(remoting.Heartbeat)) // the broker knows whom to bring the reply to
			p, err := message.NewProperties("CORRELATION_ID", asked["CORRELATION_ID"], "MSG_TYPE", "reply")
			require.NoError(t, err)
			push := remoting.NewRequest(remoting.PushReplyMessage, remoting.String("topic", "c_REPLY_TOPIC"), remoting.String("properties", string(p)))
			push.Body = []byte("to " + string(req.Body))
			conn := a.conn()
			go func() { _, _ = conn.Call(context.Background(), push) }()
			return nil
		})
		p := w.start(producer.Options{})
		r, err := p.Request(t.Context(), msg("T", "question"))
		require.NoError(t, err)
		require.Equal(t, "to question", string(r.Body))
		m := msg("T", "x")
		require.NoError(t, m.SetProperty("mode", "silent"))
		began := time.Now()
		_, err = p.Request(t.Context(), m)
		require.ErrorIs(t, err, producer.ErrTimeout)
		require.Equal(t, 3*time.Second, time.Since(began))
		_, err = p.Request(t.Context(), nil)
		require.ErrorIs(t, err, producer.ErrInvalidMessage)

		asked := &message.Received{}
		_, err = producer.Reply(asked, nil)
		require.ErrorIs(t, err, producer.ErrInvalidMessage)
		asked.Properties, err = message.NewProperties("CLUSTER", "c", "CORRELATION_ID", "1", "REPLY_TO_CLIENT", "id", "TTL", "3000")
		require.NoError(t, err)
		reply, err := producer.Reply(asked, []byte("answer"))
		require.NoError(t, err)
		w.topic("c_REPLY_TOPIC", 1, a)
		a.answers(nil)
		_, err = p.Send(t.Context(), reply)
		require.NoError(t, err)
		sent := a.got(remoting.SendReplyMessageV2)
		require.Len(t, sent, 1)
		got := properties(sent[0])
		delete(got, "UNIQ_KEY")
		require.Equal(t, map[string]string{"MSG_TYPE": "reply", "CORRELATION_ID": "1", "REPLY_TO_CLIENT": "id", "TTL": "3000"}, got)
	})
}
