package broker_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

const (
	mayWait    = 2
	subscribes = 4
)

func TestPullsAreAnsweredAsTheOriginalDoes(t *testing.T) { // R-F-09, protocol.md 5.5
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a", "b", "c")
		for _, tt := range []struct {
			name  string
			q     pulling
			code  int32
			next  int64
			count int
		}{
			{"found", pulling{topic: "T"}, remoting.Success, 3, 3},
			{"some", pulling{topic: "T", count: 2}, remoting.Success, 2, 2},
			{"from the middle", pulling{topic: "T", offset: 1}, remoting.Success, 3, 2},
			{"nothing new", pulling{topic: "T", offset: 3}, remoting.PullNotFound, 3, 0},
			{"beyond the end", pulling{topic: "T", offset: 9}, remoting.PullOffsetMoved, 3, 0},
			{"before the start", pulling{topic: "T", offset: -1}, remoting.PullOffsetMoved, 0, 0},
			{"all filtered", pulling{topic: "T", tags: "x || y"}, remoting.PullRetryImmediately, 3, 0},
			{"empty queue", pulling{topic: "T", queue: 1}, remoting.PullNotFound, 0, 0},
			{"empty queue, another offset", pulling{topic: "T", queue: 1, offset: 5}, remoting.PullOffsetMoved, 0, 0},
		} {
			resp := p.pull(tt.q)
			require.Equal(t, tt.code, resp.Code, tt.name)
			require.Equal(t, strconv.FormatInt(tt.next, 10), resp.Fields.Get("nextBeginOffset"), tt.name)
			require.Len(t, records(t, resp), tt.count, tt.name)
			for _, field := range []string{"suggestWhichBrokerId", "minOffset", "maxOffset"} {
				require.NotEmpty(t, resp.Fields.Get(field), tt.name)
			}
		}
		require.Equal(t, "FOUND", p.pull(pulling{topic: "T"}).Remark)
		require.Equal(t, "3", p.pull(pulling{topic: "T"}).Fields.Get("maxOffset"))
	})
}

func TestPullsAreChecked(t *testing.T) { // protocol.md 5.5
	o := small("4.9")
	o.NoAutoGroups = true
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		const known = "TOOLS_CONSUMER"
		p.beat(heartbeat("c", known, "BROADCASTING", 10, "T", "*"))
		for _, tt := range []struct {
			name string
			q    pulling
			code int32
		}{
			{"unknown group", pulling{group: "Nobody", topic: "T"}, remoting.SubscriptionGroupNotExist},
			{"unknown topic", pulling{group: known, topic: "N"}, remoting.TopicNotExist},
			{"unknown queue", pulling{group: known, topic: "T", queue: 4}, remoting.SystemError},
			{"group that is not connected", pulling{group: "SELF_TEST_C_GROUP", topic: "T", flags: mayWait}, remoting.SubscriptionNotExist},
			{"topic not subscribed", pulling{group: known, topic: "TBW102", flags: mayWait}, remoting.SubscriptionNotExist},
			{"subscription without a tag", pulling{group: known, topic: "T", flags: mayWait | subscribes, tags: "||"}, remoting.SubscriptionParseFailed},
			{"older subscription here", pulling{group: known, topic: "T", flags: mayWait, version: 11}, remoting.SubscriptionNotLatest},
			{"the same", pulling{group: known, topic: "T", flags: mayWait, version: 10}, remoting.Success},
			{"the Go client's 0", pulling{group: known, topic: "T", flags: mayWait}, remoting.Success}, // trap 4
		} {
			require.Equal(t, tt.code, p.pull(tt.q).Code, tt.name)
		}
		sql := pulling{group: known, topic: "T", flags: subscribes}.request()
		sql.Fields.Set("expressionType", "SQL92")
		require.Equal(t, remoting.SystemError, p.send(sql).Code)
		require.Equal(t, remoting.SystemError, p.ask(remoting.CheckClientConfig).Code)
	})
}

func TestFilterByTagsCode(t *testing.T) { // R-F-10
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "b || c"))
		for i := range 12 {
			tag := string(rune('a' + i%3))
			p.put(outgoing{topic: "T", body: tag + strconv.Itoa(i), properties: message.Properties("TAGS\x01" + tag + "\x02")})
		}
		require.Equal(t, []string{"a0", "a3", "a6", "a9"}, bodies(t, p.pull(pulling{topic: "T", tags: "a"})))
		require.Len(t, bodies(t, p.pull(pulling{topic: "T", flags: mayWait})), 8) // as subscribed
	})
}

func TestAPullLooksAtEightHundredMessages(t *testing.T) { // protocol.md E10
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		var batch []string
		for range 900 {
			batch = append(batch, "x", "TAGS\x01a\x02")
		}
		batch = append(batch, "last", "TAGS\x01b\x02")
		resp := p.send(outgoing{topic: "T", body: string(batchBody(batch...))}.request(remoting.SendBatchMessage))
		require.Equal(t, remoting.Success, resp.Code, resp.Remark)
		resp = p.pull(pulling{topic: "T", tags: "b"})
		require.Equal(t, remoting.PullRetryImmediately, resp.Code)
		require.Equal(t, "800", resp.Fields.Get("nextBeginOffset"))
		require.Equal(t, []string{"last"}, bodies(t, p.pull(pulling{topic: "T", tags: "b", offset: 800})))
	})
}

func TestLimitsOfOnePull(t *testing.T) { // R-F-10
	o := small("4.9")
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		for i := range 40 {
			p.puts("T", strconv.Itoa(i))
		}
		require.Len(t, records(t, p.pull(pulling{topic: "T", count: 100})), 32)
		for range 8 {
			p.put(outgoing{topic: "T", queue: 1, body: strings.Repeat("x", 60<<10)})
		}
		require.Len(t, records(t, p.pull(pulling{topic: "T", queue: 1})), 5) // 256 KiB
	})
	o = small("4.9")
	o.Memory = 1 // all but the last is on disk
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		for i := range 40 {
			p.puts("T", strconv.Itoa(i))
		}
		resp := p.pull(pulling{topic: "T"})
		require.Len(t, records(t, resp), 8)
		require.Equal(t, "8", resp.Fields.Get("nextBeginOffset"))
		require.Equal(t, "1", resp.Fields.Get("suggestWhichBrokerId"))
	})
}

// later sends a pull that is held, and gives its answer.
func (p *peer) later(q pulling) <-chan *remoting.Command {
	answers := make(chan *remoting.Command, 1)
	if q.flags == 0 {
		q.flags = subscribes | mayWait
	}
	req := q.request()
	require.NoError(p.w.t, p.c.Async(context.Background(), "broker", req, new(remoting.Pending), remoting.WaiterFunc(func(resp *remoting.Command, err error) {
		if err == nil {
			answers <- resp
		}
		close(answers)
	})))
	synctest.Wait()
	return answers
}

func TestHeldPullsAreWokenByTheirQueue(t *testing.T) { // protocol.md 5.5, trap 3
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p, q := w.peer(), w.peer()
		p.puts("T", "a")
		one := p.later(pulling{topic: "T", offset: 1, wait: 15 * time.Second})
		other := p.later(pulling{topic: "T", queue: 1, wait: 15 * time.Second})
		tagged := p.later(pulling{topic: "T", offset: 1, tags: "x", wait: 15 * time.Second})
		require.Equal(t, int64(3), w.broker.Stats().Held)
		began := time.Now()
		time.Sleep(2 * time.Second)
		q.puts("T", "b")
		require.Equal(t, []string{"b"}, bodies(t, <-one))
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, int64(2), w.broker.Stats().Held) // neither another queue nor another tag wakes
		resp := <-other
		require.Equal(t, remoting.PullNotFound, resp.Code)
		require.Equal(t, 15*time.Second, time.Since(began))
		resp = <-tagged
		require.Equal(t, remoting.PullRetryImmediately, resp.Code) // "b" was looked at
		require.Equal(t, "2", resp.Fields.Get("nextBeginOffset"))
		require.Zero(t, w.broker.Stats().Held)
	})
}

func TestShortPolling(t *testing.T) { // protocol.md 5.5: longPollingEnable
	o := small("4.9")
	o.NoLongPolling = true
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		began := time.Now()
		require.Equal(t, remoting.PullNotFound, (<-p.later(pulling{topic: "T", offset: 1, wait: 15 * time.Second})).Code)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestHeldPullsEndWithTheirConnectionAndTheBroker(t *testing.T) { // trap 3, R-F-05
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p, q := w.peer(), w.peer()
		p.puts("T", "a")
		p.later(pulling{topic: "T", offset: 1, wait: time.Minute})
		kept := q.later(pulling{topic: "T", offset: 1, wait: time.Minute})
		p.lose()
		require.Equal(t, int64(1), w.broker.Stats().Held)
		w.stop()
		_, answered := <-kept
		require.False(t, answered)
	})
}

func TestTooManyHeldPullsAreRefused(t *testing.T) { // R-G-14
	o := small("4.9")
	o.MaxHeld = 2
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		q := pulling{topic: "T", offset: 1, wait: time.Minute}
		p.later(q)
		p.later(q)
		require.Equal(t, remoting.SystemBusy, (<-p.later(q)).Code) // upon which a client waits before it asks again
		require.Equal(t, int64(1), w.broker.Stats().Busy)
	})
}

func TestDamagedMessagesArePassedOver(t *testing.T) { // protocol.md E10
	o := small("4.9")
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "one", "two", "three", "four")
		got := records(t, p.pull(pulling{topic: "T"}))
		require.Len(t, got, 4)
		harm(t, &o, "two", "three")
		require.Equal(t, []string{"one"}, bodies(t, p.pull(pulling{topic: "T"})))
		resp := p.pull(pulling{topic: "T", offset: 1})
		require.Equal(t, remoting.PullRetryImmediately, resp.Code)
		require.Equal(t, "3", resp.Fields.Get("nextBeginOffset"))
		require.Equal(t, []string{"four"}, bodies(t, p.pull(pulling{topic: "T", offset: 3})))
	})
}

func TestAPullCommitsTheOffsetThatItCarries(t *testing.T) { // protocol.md 5.5
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a", "b")
		p.pull(pulling{topic: "T", flags: subscribes | mayWait | 1, commit: 2})
		at, ok := w.broker.Store().ConsumerOffset("T", "CG", 0)
		require.True(t, ok)
		require.Equal(t, int64(2), at)
		p.pull(pulling{topic: "T", flags: subscribes | mayWait, commit: 1})
		at, _ = w.broker.Store().ConsumerOffset("T", "CG", 0)
		require.Equal(t, int64(2), at)
	})
}

func TestOneConnectionHoldsManyPulls(t *testing.T) { // protocol.md 5.5: they do not block what comes later
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		var held []<-chan *remoting.Command
		for range 600 {
			held = append(held, p.later(pulling{topic: "T", offset: 1, wait: 20 * time.Second}))
		}
		p.puts("T", "b")
		for i, answers := range held {
			require.Equal(t, []string{"b"}, bodies(t, <-answers), strconv.Itoa(i))
		}
	})
}
