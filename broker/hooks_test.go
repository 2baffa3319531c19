package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestHooksSeeAndRefuseRequests(t *testing.T) { // R-F-24
	o := small("4.9")
	var mu sync.Mutex
	var seen []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf(format, args...))
	}
	o.Hooks = broker.Hooks{
		Before: func(_ context.Context, r *broker.Request) error {
			if r.Topic == "Closed" {
				return errors.New("closed today")
			}
			note("before %d %s %s %s", r.Code, r.Group, r.Topic, r.Field("opinion"))
			return nil
		},
		After: func(_ context.Context, r *broker.Request, code int32, _ time.Duration) {
			note("after %d %d", r.Code, code)
		},
		Pulled: func(group, topic string, queueID int32, messages int) {
			note("pulled %s %s %d %d", group, topic, queueID, messages)
		},
		Queued: func(u rocketstore.QueuedUnit) { note("queued %s %d", u.Topic, u.QueueOffset) },
	}
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		told := func(do func()) []string {
			do()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			list := seen
			seen = nil
			return list
		}
		require.ElementsMatch(t, []string{"before 310 PG T ", "after 310 0", "queued T 0"}, told(func() { p.puts("T", "a") }))
		require.Equal(t, []string{"before 11 CG T ", "pulled CG T 0 1", "after 11 -1"}, told(func() { p.send(pulling{topic: "T", flags: subscribes}.request()) }))
		require.Equal(t, []string{"before 37   ", "after 37 1"}, told(func() { p.ask(remoting.EndTransaction) }))
		require.Empty(t, told(func() {
			resp := p.put(outgoing{topic: "Closed"})
			require.Equal(t, remoting.NoPermission, resp.Code)
			require.Equal(t, "closed today", resp.Remark)
		}))
		_, err := p.c.Call(context.Background(), "broker", remoting.NewRequest(remoting.QueryConsumerOffset, queueFields("Closed", 0)...))
		require.ErrorIs(t, err, remoting.ErrClosed) // no error for that question
	})
}

func TestLagIsWhatAGroupHasNotConsumed(t *testing.T) { // R-G-05
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a", "b")
		time.Sleep(time.Minute)
		stored := time.Now()
		p.puts("T", "c", "d")
		time.Sleep(time.Minute)
		require.Equal(t, remoting.Success, p.put(outgoing{topic: "T", queue: 1, body: "e"}).Code)
		lags, err := w.broker.Lags(t.Context())
		require.NoError(t, err)
		require.Empty(t, lags)
		commit := func(queue, offset int64) {
			p.ask(remoting.UpdateConsumerOffset, queueFields("T", queue, remoting.Int("commitOffset", offset))...)
		}
		commit(0, 2)
		commit(1, 0)
		lags, err = w.broker.Lags(t.Context())
		require.NoError(t, err)
		require.Equal(t, []broker.Lag{{Group: "CG", Topic: "T", Messages: 3, Oldest: stored.Truncate(time.Millisecond)}}, lags)
		commit(0, 4)
		commit(1, 1)
		lags, err = w.broker.Lags(t.Context())
		require.NoError(t, err)
		require.Equal(t, []broker.Lag{{Group: "CG", Topic: "T"}}, lags)

		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		require.Equal(t, remoting.Success, p.put(outgoing{topic: "%RETRY%CG", body: "dead", reconsume: 17, most: 16}).Code)
		dead, err := w.broker.DeadLetters(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"CG": 1}, dead)
	})
}

func TestSendsAreRefusedWhileNoneEnds(t *testing.T) { // R-D-139
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		w.broker.Occupy(1, 0) // as one that the disk holds up
		p.puts("T", "b")
		time.Sleep(2 * time.Second)
		resp := p.put(outgoing{topic: "T", body: "c"})
		require.Equal(t, remoting.SystemBusy, resp.Code)
		require.Equal(t, "[PCBUSY_CLEAN_QUEUE]no send has ended for 1s", resp.Remark)
		require.Equal(t, remoting.Success, p.ask(remoting.QueryConsumerOffset, queueFields("T", 0)...).Code)
		w.broker.Occupy(-1, 0)
		p.puts("T", "d")
		require.Equal(t, []string{"a", "b", "d"}, bodies(t, p.pull(pulling{topic: "T"}))) // what was refused was not stored
	})
}

func TestRetentionFollowsTheOriginalsProperties(t *testing.T) { // R-G-17, protocol.md 16
	var o broker.Options
	unknown, err := o.SetProperties("fileReservedTime=48\ndeleteWhen=04\ndiskMaxUsedSpaceRatio=70\ncleanFileForciblyEnable=false\ndeleteCommitLogFilesInterval=200\n" +
		"cleanResourceInterval=20000\ndeleteFileBatchMax=3\n")
	require.NoError(t, err)
	require.Empty(t, unknown)
	r := o.Store.Retention
	require.Equal(t, 48*time.Hour, r.MaxAge)
	require.InDelta(t, 0.7, r.DiskRatio, 1e-9)
	require.InDelta(t, 1, r.ForceRatio, 1e-9)
	require.Equal(t, 200*time.Millisecond, r.Interval)
	require.Equal(t, 20*time.Second, r.Every)
	require.Equal(t, 3, r.FilesPerRound)
	for _, bad := range []string{"diskMaxUsedSpaceRatio=101", "cleanFileForciblyEnable=maybe", "deleteFileBatchMax=0"} {
		_, err := new(broker.Options).SetProperties(bad)
		require.ErrorContains(t, err, "allowed: ", bad)
	}
}
