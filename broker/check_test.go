package broker_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

func getOf(topic string, offset int64, queue ...int32) rocketstore.GetRequest {
	r := rocketstore.GetRequest{Topic: topic, Offset: offset, Max: 1}
	if len(queue) > 0 {
		r.QueueID = queue[0]
	}
	return r
}

// prepare sends a prepared message of group PG to queue 1 of T, and gives what its producer echoes.
func (p *peer) prepare(body string, more message.Properties) (number, offset int64) {
	p.w.t.Helper()
	resp := p.put(outgoing{
		topic: "T", queue: 1, body: body, sysFlag: message.FlagPrepared | message.FlagCompressed,
		properties: "TRAN_MSG\x01true\x02PGROUP\x01PG\x02WAIT\x01true\x02" + more,
	})
	require.Equal(p.w.t, remoting.Success, resp.Code, resp.Remark)
	_, offset, err := message.ParseOffsetID(resp.Fields.Get("msgId"))
	require.NoError(p.w.t, err)
	f := resp.Fields.Reader()
	return f.Int64("queueOffset"), offset
}

// endOf makes request 37: how is 8 to commit, 12 to roll back, 0 for not known.
func endOf(number, offset, how int64) *remoting.Command {
	return remoting.NewRequest(remoting.EndTransaction, remoting.String("producerGroup", "PG"), remoting.Int("tranStateTableOffset", number),
		remoting.Int("commitLogOffset", offset), remoting.Int("commitOrRollback", how))
}

// producerBeat is the body of request 34 of a client that only produces.
func producerBeat(client, group string) []byte {
	return []byte(`{"clientID":"` + client + `","producerDataSet":[{"groupName":"` + group + `"}],"consumerDataSet":[]}`)
}

// asked gives the questions (39) since the last call.
func (p *peer) asked() []*remoting.Command {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.questions
	p.questions = nil
	return list
}

// engines are brokers of each line, and of the state table where the line would have a half topic.
func engines() map[string]broker.Options {
	all := map[string]broker.Options{"3.1": small("3.1"), "4.9": small("4.9"), "5.3": small("5.3")}
	o := small("4.9")
	o.Store.Transactions = rocketstore.StateTable
	all["4.9 with a state table"] = o
	for name, o := range all {
		o.Store.Checks.Every, o.Store.Checks.MinAge = 10*time.Second, 6*time.Second
		all[name] = o
	}
	return all
}

func TestProducersAreAskedWhatBecameOfTheirTransactions(t *testing.T) { // R-B-40 to R-B-49, R-F-13, R-F-14, protocol.md 7, E1, E3
	for name, o := range engines() {
		inWorld(t, o, func(t *testing.T, w *world) {
			p, other := w.peer(), w.peer()
			p.beat(producerBeat("p", "PG"))
			other.beat(producerBeat("o", "OTHER"))
			p.prepare("open", "UNIQ_KEY\x01U1\x02")
			time.Sleep(21 * time.Second)
			list := p.asked()
			require.NotEmpty(t, list, name)
			require.Empty(t, other.asked()) // of another group
			q := list[len(list)-1]
			require.True(t, q.IsOneway())
			require.Equal(t, remoting.Java, q.Language)
			require.Equal(t, "U1", q.Fields.Get("msgId"))
			require.Equal(t, "U1", q.Fields.Get("transactionId"))
			f := q.Fields.Reader()
			number, at := f.Int64("tranStateTableOffset"), f.Int64("commitLogOffset")
			_, named, err := message.ParseOffsetID(q.Fields.Get("offsetMsgId"))
			require.NoError(t, err)
			require.Equal(t, at, named)
			r, err := commitlog.Decode(q.Body)
			require.NoError(t, err)
			require.Equal(t, "T", string(r.Topic))
			require.Equal(t, int32(1), r.QueueID)
			require.Equal(t, "open", string(r.Body))
			require.True(t, r.SysFlag.Has(message.FlagCompressed)) // the body is as it was sent (E3)
			require.Equal(t, "PG", string(message.Lookup(r.Properties, "PGROUP")))
			require.Zero(t, p.countOf("T"))
			answer := endOf(number, at, 8)
			answer.Fields = append(answer.Fields, remoting.Bool("fromTransactionCheck", true), remoting.String("msgId", "U1"))
			require.Equal(t, remoting.Success, p.send(answer).Code)
			got := records(t, p.pull(pulling{topic: "T", queue: 1}))
			require.Len(t, got, 1, name)
			require.Equal(t, "open", string(got[0].Body))
			require.True(t, got[0].SysFlag.Has(message.FlagCompressed))
			require.Equal(t, message.FlagCommit, got[0].SysFlag.Transaction())
			require.Equal(t, "true", propertyOf(got[0], "TRAN_MSG")) // E1
			time.Sleep(2 * time.Minute)
			require.Empty(t, p.asked()) // it is ended
			require.Len(t, bodies(t, p.pull(pulling{topic: "T", queue: 1})), 1)
		})
	}
}

func TestAnotherProducerOfTheGroupAnswers(t *testing.T) { // R-B-41, R-D-119
	for name, o := range engines() {
		inWorld(t, o, func(t *testing.T, w *world) {
			gone, there := w.peer(), w.peer()
			gone.beat(producerBeat("gone", "PG"))
			gone.prepare("left behind", "") // as 3.1.4 sends it: without a UNIQ_KEY
			gone.lose()
			time.Sleep(40 * time.Second)
			there.beat(producerBeat("there", "PG")) // nobody could be asked so far
			time.Sleep(20 * time.Second)
			list := there.asked()
			require.NotEmpty(t, list, name)
			q := list[len(list)-1]
			if !strings.HasPrefix(name, "5.3") { // which adds one
				require.Empty(t, q.Fields.Get("transactionId"))
			}
			f := q.Fields.Reader()
			require.Equal(t, remoting.Success, there.send(endOf(f.Int64("tranStateTableOffset"), f.Int64("commitLogOffset"), 8)).Code)
			require.Equal(t, []string{"left behind"}, bodies(t, there.pull(pulling{topic: "T", queue: 1})), name)
		})
	}
}

func TestTheProducersOfAGroupAreAskedInTurn(t *testing.T) { // R-B-41
	o := small("3.1")
	o.Store.Checks.Every, o.Store.Checks.MinAge = 10*time.Second, 6*time.Second
	inWorld(t, o, func(t *testing.T, w *world) {
		var peers []*peer
		for _, id := range []string{"a", "b", "c"} {
			p := w.peer()
			p.beat(producerBeat(id, "PG"))
			peers = append(peers, p)
		}
		peers[0].prepare("open", "")
		time.Sleep(91 * time.Second)
		counts := []int{len(peers[0].asked()), len(peers[1].asked()), len(peers[2].asked())}
		slices.Sort(counts)
		require.LessOrEqual(t, counts[2]-counts[0], 1, "%v", counts)
		require.GreaterOrEqual(t, counts[0], 2)
	})
}

func TestChecksCanBeSwitchedOffAndOn(t *testing.T) { // R-B-29
	for name, o := range engines() {
		o.NoTransactionChecks = true
		inWorld(t, o, func(t *testing.T, w *world) {
			p := w.peer()
			p.beat(producerBeat("p", "PG"))
			p.prepare("open", "")
			time.Sleep(time.Minute + time.Second)
			require.Empty(t, p.asked(), name)
			w.broker.SetTransactionChecks(true)
			time.Sleep(10 * time.Second)
			require.NotEmpty(t, p.asked(), name)
			w.broker.SetTransactionChecks(false)
			time.Sleep(time.Minute)
			require.Empty(t, p.asked(), name)
		})
	}
}

func TestWhatNobodyAnswersIsGivenUp(t *testing.T) { // R-D-117, R-F-14
	o := small("4.9")
	o.Store.Checks.Every, o.Store.Checks.MinAge, o.Store.Checks.Max = 10*time.Second, 6*time.Second, 3
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.beat(producerBeat("p", "PG"))
		p.prepare("nobody knows", "")
		time.Sleep(100 * time.Second)
		require.Len(t, p.asked(), 3)
		require.Equal(t, 1, p.countOf("TRANS_CHECK_MAX_TIME_TOPIC"))
	})
}

// A producer that does not read what it is sent holds up nobody: all questions reach the other one, more than a connection
// holds back at once.
func TestAStuckProducerIsPassedOver(t *testing.T) {
	o := small("3.1")
	o.Store.Checks.Every, o.Store.Checks.MinAge = 10*time.Second, 6*time.Second
	inWorld(t, o, func(t *testing.T, w *world) {
		nc, err := w.pipe.Dial(context.Background(), "broker")
		require.NoError(t, err)
		defer func() { require.NoError(t, nc.Close()) }()
		beat := remoting.NewRequest(remoting.Heartbeat)
		beat.Body = producerBeat("stuck", "PG")
		frame, err := remoting.AppendFrame(nil, beat)
		require.NoError(t, err)
		_, err = nc.Write(frame)
		require.NoError(t, err)
		p := w.peer()
		p.beat(producerBeat("p", "PG"))
		const count = 40
		for range count {
			p.prepare(string(make([]byte, 100<<10)), "")
		}
		numbers := map[string]bool{}
		for range 12 {
			time.Sleep(10 * time.Second)
			for _, q := range p.asked() {
				numbers[q.Fields.Get("tranStateTableOffset")] = true
			}
		}
		require.Len(t, numbers, count)
	})
}
