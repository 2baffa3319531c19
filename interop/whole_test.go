//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/namesrv"
)

// brokerProcess is storectl broker in a process that can be killed, on a directory of its own.
type brokerProcess struct {
	name, dir, config, program string
	port                       int
	cmd                        *exec.Cmd
	log                        *tail
}

func (p *brokerProcess) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.program, "broker", "--config", p.config, "--log-level", "warn")
	p.cmd.Stderr = p.log
	require.NoError(t, p.cmd.Start())
}

// end sends a signal and waits until the process is gone.
func (p *brokerProcess) end(t *testing.T, s syscall.Signal) {
	t.Helper()
	if p.cmd != nil {
		require.NoError(t, p.cmd.Process.Signal(s))
		_ = p.cmd.Wait() // a killed one gives an error
		p.cmd = nil
	}
}

// wholeSystem is three brokers, two name servers, and what the model below knows.
type wholeSystem struct {
	servers  []*ours
	brokers  []*brokerProcess
	addrs    primitive.NamesrvAddr
	mu       sync.Mutex
	acked    map[queuePlace]string // what was acknowledged, by where the answer says it is
	last     map[string]int        // the last acknowledged number of each key
	consumed []string              // bodies, in the order of the calls
}

// queuePlace is where a message lies.
type queuePlace struct {
	broker string
	queue  int
	offset int64
}

const wholeTopic = "TopicWhole"

func startWholeSystem(t *testing.T) *wholeSystem {
	t.Helper()
	w := &wholeSystem{acked: map[queuePlace]string{}, last: map[string]int{}}
	for range 2 {
		s := startOurs(t, namesrv.Options{})
		w.servers, w.addrs = append(w.servers, s), append(w.addrs, s.addr)
	}
	program := filepath.Join(t.TempDir(), "storectl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./storectl")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for i := range 3 {
		p := &brokerProcess{name: "broker-" + string(rune('a'+i)), dir: t.TempDir(), port: 10911 + 10*i, program: program, log: &tail{}}
		p.config = filepath.Join(p.dir, "broker.conf")
		text := fmt.Sprintf("brokerName=%s\nlistenPort=%d\nnamesrvAddr=%s\nstorePathRootDir=%s\nflushDiskType=SYNC_FLUSH\nmappedFileSizeCommitLog=4194304\n"+
			"mappedFileSizeConsumeQueue=60000\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n", p.name, p.port, strings.Join(w.addrs, ";"), filepath.Join(p.dir, "store"))
		require.NoError(t, os.WriteFile(p.config, []byte(text), 0o600))
		p.start(t)
		t.Cleanup(func() { p.end(t, syscall.SIGKILL) })
		w.brokers = append(w.brokers, p)
	}
	for _, s := range w.servers {
		eventually(t, patience, w.watched(), "registrations", func() bool { return len(s.brokers(t, "TBW102")) == 3 })
	}
	for _, p := range w.brokers {
		makeTopic(t, "127.0.0.1:"+strconv.Itoa(p.port), wholeTopic)
	}
	for _, s := range w.servers {
		eventually(t, patience, w.watched(), "the topic", func() bool { return len(s.brokers(t, wholeTopic)) == 3 })
	}
	return w
}

// watched has the words of the brokers, for a failure.
func (w *wholeSystem) watched() *javaProcess { return &javaProcess{log: w.brokers[0].log} }

// produce sends the numbers 0, 1, … of one key to one queue until stop is closed. Each is sent again, until it is
// acknowledged, before the next: so what is acknowledged has an order.
func (w *wholeSystem) produce(t *testing.T, key string, queue primitive.MessageQueue, stop <-chan struct{}) {
	instance := 0
	begin := func() rocketmq.Producer {
		instance++
		p, err := rocketmq.NewProducer(producer.WithNameServer(w.addrs), producer.WithGroupName("PG-"+key), producer.WithRetry(0),
			producer.WithInstanceName(key+strconv.Itoa(instance)), producer.WithSendMsgTimeout(3*time.Second), producer.WithQueueSelector(producer.NewManualQueueSelector()))
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Error(err)
			return nil
		}
		return p
	}
	p := begin()
	for n := 0; p != nil; n++ {
		body := key + "-" + strconv.Itoa(n)
		for failures := 1; ; failures++ {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			m := primitive.NewMessage(wholeTopic, []byte(body))
			m.Queue = &queue
			result, err := p.SendSync(ctx, m)
			cancel()
			if err == nil && result.Status == primitive.SendOK {
				w.mu.Lock()
				w.acked[queuePlace{queue.BrokerName, queue.QueueId, result.QueueOffset}] = body
				w.last[key] = n
				w.mu.Unlock()
				break
			}
			select {
			case <-stop: // what is under way may be there or not
				_ = p.Shutdown()
				return
			case <-time.After(100 * time.Millisecond):
			}
			if failures%40 == 0 { // its routes, which it looks up every 30 s, are of a moment without the broker
				_ = p.Shutdown()
				if p = begin(); p == nil {
					return
				}
			}
		}
		select {
		case <-stop:
			_ = p.Shutdown()
			return
		default:
		}
	}
}

// consume starts a member of the group that consumes in order.
func (w *wholeSystem) consume(t *testing.T, name string) rocketmq.PushConsumer {
	t.Helper()
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(w.addrs), consumer.WithGroupName("CGWHOLE"), consumer.WithInstance(name),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumerOrder(true))
	require.NoError(t, err)
	require.NoError(t, c.Subscribe(wholeTopic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, m := range messages {
			w.consumed = append(w.consumed, string(m.Body))
		}
		return consumer.ConsumeSuccess, nil
	}))
	require.NoError(t, c.Start())
	return c
}

// strike kills one after the other and brings it back: brokers without a warning, now and then a name server.
func (w *wholeSystem) strike(t *testing.T, duration time.Duration) (kills int) {
	t.Helper()
	for end := time.Now().Add(duration); time.Now().Before(end); kills++ {
		time.Sleep(1500 * time.Millisecond) // the schedule: nothing here waits for an event
		p := w.brokers[kills%3]
		p.end(t, syscall.SIGKILL)
		if kills%3 == 2 {
			s := w.servers[kills/3%2]
			s.halt(t)
			s.start(t)
		}
		time.Sleep(500 * time.Millisecond)
		p.start(t)
	}
	return kills
}

// TestTheWholeSystemLosesNothing runs three brokers under sync flush and two name servers, kills and restarts them while real
// producers send and real consumers consume, and then compares with a model of what must be (R-F-20):
//
//   - A key's messages have the numbers 0, 1, 2, … and go to one queue. Number n+1 is sent only after n was acknowledged, and a
//     message is sent again until it is. So a queue holds, of one key, every acknowledged number, and the first places of the
//     numbers are in their order; a number may be there several times.
//   - An acknowledgement names a place in the queue, and that place holds the message.
//   - Consumers see every acknowledged message at least once, and of one key the first time in the order of the numbers.
//
// Schedule: a broker is killed every two seconds, in turn, and a name server every third time, for 12 s; with INTEROP=all for 60 s.
func TestTheWholeSystemLosesNothing(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	rlog.SetLogLevel("fatal")
	duration := 12 * time.Second
	if os.Getenv("INTEROP") == "all" {
		duration = time.Minute
	}
	w := startWholeSystem(t)
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for i := range 6 {
		queue := primitive.MessageQueue{Topic: wholeTopic, BrokerName: w.brokers[i%3].name, QueueId: 1 + i/3}
		senders.Go(func() { w.produce(t, "key"+strconv.Itoa(i), queue, stop) })
	}
	c1, c2 := w.consume(t, "c1"), w.consume(t, "c2")
	kills := w.strike(t, duration)
	close(stop)
	senders.Wait()
	w.mu.Lock()
	want := map[string]bool{}
	for _, body := range w.acked {
		want[body] = true
	}
	w.mu.Unlock()
	eventually(t, 2*patience, w.watched(), "consumers to see all", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		missing := maps.Clone(want)
		for _, body := range w.consumed {
			delete(missing, body)
		}
		return len(missing) == 0
	})
	require.NoError(t, c1.Shutdown())
	require.NoError(t, c2.Shutdown())
	t.Logf("%d kills, %d acknowledged, %d consumed", kills, len(w.acked), len(w.consumed))
	require.Greater(t, len(w.acked), 100)
	requireFirstsInOrder(t, w.consumed, nil)
	for _, p := range w.brokers {
		p.end(t, syscall.SIGTERM)
		w.checkStored(t, p)
	}
}

// requireFirstsInOrder checks that the first time of each number of a key comes in the order of the numbers, and that none up to
// last is missing.
func requireFirstsInOrder(t *testing.T, bodies []string, last map[string]int) {
	t.Helper()
	next := map[string]int{}
	for i, body := range bodies {
		key, number, ok := strings.Cut(body, "-")
		if !ok {
			continue // the one that made the topic
		}
		n, err := strconv.Atoi(number)
		require.NoError(t, err, body)
		require.LessOrEqual(t, n, next[key], "%s at %d came before %d", body, i, next[key])
		next[key] = max(next[key], n+1)
	}
	for key, n := range last {
		require.Greater(t, next[key], n, key)
	}
}

// checkStored compares a broker's directory with the acknowledgements.
func (w *wholeSystem) checkStored(t *testing.T, p *brokerProcess) {
	t.Helper()
	s, err := rocketstore.Open(filepath.Join(p.dir, "store"), &rocketstore.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.Background())) }()
	require.False(t, s.Report().Unclean)
	for queue := 1; queue <= 2; queue++ {
		var stored []string
		for r, err := range s.Messages(wholeTopic, int32(queue), 0) {
			require.NoError(t, err)
			if want, ok := w.acked[queuePlace{p.name, queue, r.QueueOffset}]; ok {
				require.Equal(t, want, string(r.Body))
			}
			stored = append(stored, string(r.Body))
		}
		keys := map[string]int{}
		for at, body := range w.acked {
			if key, _, _ := strings.Cut(body, "-"); at.broker == p.name && at.queue == queue {
				require.Less(t, at.offset, int64(len(stored)), "%s", body)
				keys[key] = w.last[key]
			}
		}
		requireFirstsInOrder(t, stored, keys)
	}
}
