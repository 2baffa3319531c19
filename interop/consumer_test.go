//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/namesrv"
)

// ourSeen is what consumers of ours got.
type ourSeen struct {
	mu   sync.Mutex
	rows []received
	hold func(r received) // called by the listener
}

func (s *ourSeen) listen(_ context.Context, b *consumer.Batch) error {
	for _, m := range b.Messages {
		r := received{queue: int64(m.QueueID), offset: m.QueueOffset, tags: m.Tag(), body: strings.TrimRight(string(m.Body), "."), length: len(m.Body)}
		r.keys, _ = m.Properties.Get("KEYS")
		r.n, _ = m.Properties.Get("n")
		s.mu.Lock()
		s.rows = append(s.rows, r)
		hold := s.hold
		s.mu.Unlock()
		if hold != nil {
			hold(r)
		}
	}
	return nil
}

func (s *ourSeen) all() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows)
}

// ourConsumer are the options of a member of ours that begins at the first message.
func ourConsumer(namesrvs, group, topic string, s *ourSeen) consumer.Options {
	o := consumer.Options{
		NameServers: strings.Split(namesrvs, ";"), Group: group, From: consumer.FromFirst, Topics: map[string]string{topic: "*"},
		ClientOptions: consumer.ClientOptions{RouteEvery: time.Second, HeartbeatEvery: time.Second}, RebalanceEvery: time.Second, SaveEvery: time.Second,
	}
	if s != nil {
		o.Listener = s.listen
	}
	return o
}

func startOurConsumer(t *testing.T, o consumer.Options) *consumer.Consumer {
	t.Helper()
	c, err := consumer.Start(t.Context(), &o)
	require.NoError(t, err)
	t.Cleanup(func() { stopOurConsumer(t, c) })
	return c
}

func stopOurConsumer(t *testing.T, c *consumer.Consumer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, c.Close(ctx))
}

// queuesOf are a member's queues of a topic.
func queuesOf(c *consumer.Consumer, topic string) (list []consumer.Queue) {
	for _, q := range c.Queues() {
		if q.Topic == topic {
			list = append(list, q)
		}
	}
	return list
}

// crowd is a group of members of several kinds.
type crowd struct {
	namesrvs, topic string
	sender          *javaProcess
	java            map[string]*javaProcess // by the name of the consumer
	ours            map[string]*ourSeen
	goes            map[string]*goSeen
	sent            int
}

// counts says how often each body came to each member.
func (c *crowd) counts(t *testing.T) map[string]map[string]int {
	t.Helper()
	counts := map[string]map[string]int{}
	add := func(member, body string) {
		if counts[body] == nil {
			counts[body] = map[string]int{}
		}
		counts[body][member]++
	}
	for name, s := range c.ours {
		for _, r := range s.all() {
			add(name, r.body)
		}
	}
	for name, p := range c.java {
		for _, r := range parseReceived(t, p.do(t, "seen", name)) {
			add(name, r.body)
		}
	}
	for name, s := range c.goes {
		for _, row := range s.all() {
			add(name, strings.Fields(row)[0])
		}
	}
	return counts
}

// send sends messages with a prefix and waits until each came to somebody.
func (c *crowd) send(t *testing.T, prefix string, n int) {
	t.Helper()
	c.sender.do(t, "send", "sync", c.topic, prefix, strconv.Itoa(n), "0")
	c.sent += n
	eventually(t, patience, c.sender, fmt.Sprintf("all of %s*", prefix), func() bool { return len(c.counts(t)) >= c.sent })
}

// shares sends in rounds until each member gets as many of a round's messages as its share is, each message once.
func (c *crowd) shares(t *testing.T, round string, n int, want map[string]int) {
	t.Helper()
	tries := 0
	eventually(t, patience, c.sender, fmt.Sprintf("shares %v", want), func() bool {
		tries++
		prefix := fmt.Sprintf("%s%d-", round, tries)
		c.send(t, prefix, n)
		got := map[string]int{}
		for body, members := range c.counts(t) {
			if strings.HasPrefix(body, prefix) {
				for member, times := range members {
					got[member] += times
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Logf("%s: %v, not yet %v", prefix, got, want)
		}
		return maps.Equal(got, want)
	})
	require.Len(t, c.counts(t), c.sent, "nothing is lost and nothing is invented")
}

// TestOursJavaAndGoShareAGroup has members of ours, of 4.9.7, 5.3.3 and of the Go client join a group one by one and leave it. When it
// has settled, each message comes once, and each member gets what its share of the queues is. R-G-28.
func TestOursJavaAndGoShareAGroup(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	rlog.SetLogLevel("fatal")
	kinds := []string{"ours", "4.9.7"}
	if os.Getenv("INTEROP") == "all" {
		kinds = append(kinds, "5.3.3")
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			ns := startOurs(t, namesrv.Options{})
			if kind == "ours" {
				startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()})
			} else {
				l := wireLines()[1]
				if kind == "5.3.3" {
					l = wireLines()[2]
				}
				l.startBroker(t, ns.addr, nil)
			}
			share(t, ns.addr, func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
		})
	}
}

// share is the same for each kind of broker: four queues and up to four members.
func share(t *testing.T, addr string, ready func() bool) {
	t.Helper()
	const topic, group = "TopicMixed", "CGM"
	four, five := wireLines()[1], wireLines()[2]
	j4 := four.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	j5 := five.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	eventually(t, patience, j4, "registration", ready)
	c := &crowd{namesrvs: addr, topic: topic, sender: j4, java: map[string]*javaProcess{}, ours: map[string]*ourSeen{}, goes: map[string]*goSeen{}}
	j4.do(t, "producer", addr, "PG")
	j4.do(t, "send", "ordered", topic, "seed-", "8", "0") // makes the topic, two messages in each queue
	c.sent = 8
	join := func(name string) *consumer.Consumer {
		c.ours[name] = &ourSeen{}
		return startOurConsumer(t, ourConsumer(addr, group, topic, c.ours[name]))
	}
	one := join("o1")
	c.shares(t, "alone", 8, map[string]int{"o1": 8})
	c.java["j4"] = j4
	j4.do(t, "push", "j4", addr, group, topic, "*", "cluster", "first")
	c.shares(t, "two", 8, map[string]int{"o1": 4, "j4": 4})
	c.java["j5"] = j5
	j5.do(t, "push", "j5", addr, group, topic, "*", "cluster", "first")
	three := map[string]int{}
	c.settles(t, "three", &three) // who has two queues depends on the ids
	require.Len(t, three, 3)
	goes, g := startGoConsumer(t, "g1", addr, group, topic, "*")
	c.goes["g1"] = goes
	c.shares(t, "four", 8, map[string]int{"o1": 2, "j4": 2, "j5": 2, "g1": 2})
	require.Len(t, queuesOf(one, topic), 1)
	require.NoError(t, g.Shutdown())
	j5.do(t, "stop", "j5")
	c.shares(t, "less", 8, map[string]int{"o1": 4, "j4": 4})
	two := join("o2")
	j4.do(t, "stop", "j4")
	c.shares(t, "ours", 8, map[string]int{"o1": 4, "o2": 4})
	stopOurConsumer(t, one)
	c.shares(t, "last", 8, map[string]int{"o2": 8})
	require.Len(t, queuesOf(two, topic), 4)
}

// settles sends in rounds until each message of one comes once, and gives who got how many.
func (c *crowd) settles(t *testing.T, round string, got *map[string]int) {
	t.Helper()
	tries := 0
	members := len(c.ours) + len(c.java) + len(c.goes)
	eventually(t, patience, c.sender, "a round without doubles", func() bool {
		tries++
		prefix := fmt.Sprintf("%s%d-", round, tries)
		c.send(t, prefix, 8)
		time.Sleep(500 * time.Millisecond) // doubles come late
		*got = map[string]int{}
		total := 0
		for body, by := range c.counts(t) {
			if strings.HasPrefix(body, prefix) {
				for member, times := range by {
					(*got)[member] += times
					total += times
				}
			}
		}
		return total == 8 && len(*got) == members
	})
}

// TestBroadcastOffsetsGoBetweenJavaAndOurs has the Java client go on where ours stopped, with the file of its offsets, and back. R-G-33.
func TestBroadcastOffsetsGoBetweenJavaAndOurs(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	const topic, group = "TopicCast", "CGB"
	ns := startOurs(t, namesrv.Options{})
	startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()})
	for _, l := range []wireLine{wireLines()[1], wireLines()[2], wireLines()[0]} {
		t.Run(l.version, func(t *testing.T) {
			home := t.TempDir()
			client := l.startJava(t, home, true, "rocketstore.interop.BrokerDriver")
			eventually(t, patience, client, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
			topic := topic + l.module
			client.do(t, "producer", ns.addr, "PG")
			client.do(t, "send", "sync", topic, "first-", "20", "0")
			consume := func(count int) *consumer.Consumer {
				s := &ourSeen{}
				o := ourConsumer(ns.addr, group, topic, s)
				o.Broadcast, o.OffsetDir, o.ClientOptions.InstanceName = true, filepath.Join(home, ".rocketmq_offsets"), "cast"
				c := startOurConsumer(t, o)
				eventually(t, patience, client, "messages", func() bool { return len(s.all()) >= count })
				stopOurConsumer(t, c)
				require.Len(t, s.all(), count)
				return c
			}
			c := consume(20)
			file := filepath.Join(home, ".rocketmq_offsets", c.ClientID(), group, "offsets.json")
			require.FileExists(t, file)

			client.do(t, "send", "sync", topic, "second-", "8", "0")
			client.do(t, "push", "cast", ns.addr, group, topic, "*", "broadcast", "first")
			requireSent(t, byQueue(seen(t, client, "cast", 8)), "second-", 8, 0, "*")
			time.Sleep(time.Second) // what should not come would come now
			require.Len(t, client.do(t, "seen", "cast"), 8)
			client.do(t, "stop", "cast")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			offsets, err := consumer.ParseOffsets(text)
			require.NoError(t, err)
			require.Len(t, offsets, 4)
			sum := int64(0) // the producer need not spread them evenly: it begins anew when it has the topic's route
			for _, offset := range offsets {
				sum += offset
			}
			require.EqualValues(t, 20+8, sum)
			if again := consumer.AppendOffsets(nil, offsets); !slices.Equal(again, text) {
				t.Logf("Java writes\n%s\nours would be\n%s", text, again)
			}
			client.do(t, "send", "sync", topic, "third-", "4", "0")
			consume(4)
		})
	}
}
