package broker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestTheTraceTopicIsMadeWhenItIsWanted(t *testing.T) { // R-A-63
	const name = "RMQ_SYS_TRACE_TOPIC"
	write := func(p *peer, topic string, queue int32) int32 {
		return p.put(outgoing{topic: topic, defaultTopic: "none", queue: queue, body: "x"}).Code
	}
	for _, line := range []string{"4.9", "5.3"} {
		o := small(line)
		inWorld(t, o, func(t *testing.T, w *world) {
			p := w.peer()
			require.Equal(t, remoting.TopicNotExist, write(p, name, 0), "it is a topic like any other")
			require.Equal(t, remoting.Success, p.put(outgoing{topic: name, queue: 3}).Code, "which is made by its default topic")
		})
		unknown, err := o.SetProperties("traceTopicEnable=true\n")
		require.NoError(t, err)
		require.Empty(t, unknown)
		require.True(t, o.TraceTopic)
		o.Store.FS = small(line).Store.FS
		inWorld(t, o, func(t *testing.T, w *world) {
			p := w.peer()
			require.Equal(t, remoting.Success, write(p, name, 0))
			require.Equal(t, remoting.SystemError, write(p, name, 1), "one queue to write")
			resp := p.pull(pulling{topic: name, queue: 1})
			require.Equal(t, remoting.SystemError, resp.Code, "and one to read")
		})
		_, err = o.SetProperties("msgTraceTopicName=MyTraces\n")
		require.NoError(t, err)
		o.Store.FS = small(line).Store.FS
		inWorld(t, o, func(t *testing.T, w *world) {
			p := w.peer()
			require.Equal(t, remoting.Success, write(p, "MyTraces", 0))
			require.Equal(t, remoting.TopicNotExist, write(p, name, 0))
		})
	}
}

func TestAMasterThatIsToWaitForSlavesSaysThatItHasNone(t *testing.T) { // R-D-137
	for _, line := range []string{"3.1", "4.9", "5.3"} {
		o := small(line)
		unknown, err := o.SetProperties("brokerRole=SYNC_MASTER\n")
		require.NoError(t, err)
		require.Empty(t, unknown)
		text, err := o.Properties()
		require.NoError(t, err)
		require.Contains(t, text, "brokerRole=SYNC_MASTER\n")
		inWorld(t, o, func(t *testing.T, w *world) {
			p := w.peer()
			one := outgoing{topic: "T", body: "one"}
			resp := p.put(one)
			require.Equal(t, remoting.SlaveNotAvailable, resp.Code)
			require.Equal(t, "0", resp.Fields.Get("queueOffset"), "it is stored all the same")
			one.properties = "WAIT\x01true\x02"
			require.Equal(t, remoting.SlaveNotAvailable, p.put(one).Code)
			one.properties = "WAIT\x01false\x02"
			require.Equal(t, remoting.Success, p.put(one).Code, "who does not wait for a slave does not care")
			one.properties, one.body = "", string(batchBody("two", "", "three", ""))
			require.Equal(t, remoting.SlaveNotAvailable, p.send(one.request(remoting.SendBatchMessage)).Code)
			one.properties = "WAIT\x01false\x02"
			require.Equal(t, remoting.Success, p.send(one.request(remoting.SendBatchMessage)).Code)
			require.Equal(t, []string{"one", "one", "one", "two", "three", "two", "three"}, bodies(t, p.pull(pulling{topic: "T"})))
			require.Equal(t, remoting.SystemError, p.put(outgoing{topic: "T", queue: 100}).Code, "what is not stored is refused as ever")
		})
	}
}

func TestSendsWaitForAWorker(t *testing.T) { // R-D-141
	o := small("4.9")
	unknown, err := o.SetProperties("sendMessageThreadPoolNums=2\n")
	require.NoError(t, err)
	require.Empty(t, unknown)
	o.MaxSends = 3
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		first, second := w.broker.TakeWorker(), w.broker.TakeWorker()
		answered := make(chan int32, 3)
		for range 3 {
			go func() {
				resp, err := p.c.Call(context.Background(), "broker", outgoing{topic: "T", body: "b"}.request(remoting.SendMessageV2))
				if err == nil {
					answered <- resp.Code
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second / 2)
		require.Empty(t, answered, "all places are taken")
		require.Equal(t, remoting.SystemBusy, p.put(outgoing{topic: "T", body: "c"}).Code, "those that wait count")
		require.Equal(t, remoting.Success, p.ask(remoting.QueryConsumerOffset, queueFields("T", 0)...).Code, "other requests do not wait")
		first()
		synctest.Wait()
		for range 3 {
			require.Equal(t, remoting.Success, <-answered, "one place serves them one by one")
		}
		second()
		require.Equal(t, []string{"a", "b", "b", "b"}, bodies(t, p.pull(pulling{topic: "T"})))
	})
	_, err = broker.New(context.Background(), &broker.Options{Dir: "x", Name: "b", SendWorkers: -1})
	require.ErrorContains(t, err, "SendWorkers")
}

func TestAShutdownDoesNotWaitForAWorker(t *testing.T) { // R-D-141, R-F-05
	o := small("4.9")
	o.SendWorkers = 1
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		give := w.broker.TakeWorker()
		answered := make(chan error, 1)
		go func() {
			resp, err := p.c.Call(context.Background(), "broker", outgoing{topic: "T", body: "b"}.request(remoting.SendMessageV2))
			if err == nil && resp.Code == remoting.Success {
				t.Error("stored by nobody")
			}
			answered <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		w.stopped = true
		require.ErrorIs(t, w.broker.Shutdown(ctx), context.DeadlineExceeded)
		require.Error(t, <-answered)
		require.NoError(t, <-w.served)
		give()
	})
}
