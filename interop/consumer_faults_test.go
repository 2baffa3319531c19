//go:build interop

package interop_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/namesrv"
)

// memberVariable holds, in the process that is to be killed, which group it shall join.
const memberVariable = "ROCKETSTORE_INTEROP_MEMBER"

// memberTask is what such a process does: it consumes, prints a line for each message, and never ends by itself.
type memberTask struct{ NameServer, Group, Topic string }

func runMember(text string, out io.Writer) error {
	var task memberTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	o := ourConsumer(task.NameServer, task.Group, task.Topic, nil)
	var mu sync.Mutex
	o.Listener = func(_ context.Context, b *consumer.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range b.Messages {
			if _, err := fmt.Fprintln(out, string(m.Body)); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := consumer.Start(context.Background(), &o); err != nil {
		return err
	}
	select {} // until it is killed
}

// startMember starts this program as a member of a group; bodies gives what it has printed.
func startMember(t *testing.T, task memberTask) (cmd *exec.Cmd, bodies func() []string) {
	t.Helper()
	text, err := json.Marshal(task)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), memberVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var mu sync.Mutex
	var list []string
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			mu.Lock()
			list = append(list, lines.Text())
			mu.Unlock()
		}
	}()
	return cmd, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), list...)
	}
}

// TestNothingIsLostWhenAMemberIsKilled kills a process of ours with SIGKILL while a group of it, another one of ours and a Java member
// consumes a stream. Every message comes at least once. R-G-28.
func TestNothingIsLostWhenAMemberIsKilled(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	const topic, group, rounds, each = "TopicKill", "CGK", 30, 40
	ns := startOurs(t, namesrv.Options{})
	startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()})
	j := wireLines()[1].startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	eventually(t, patience, j, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	j.do(t, "producer", ns.addr, "PG")
	j.do(t, "send", "sync", topic, "seed-", "4", "0")
	s := &ourSeen{}
	startOurConsumer(t, ourConsumer(ns.addr, group, topic, s))
	victim, bodies := startMember(t, memberTask{ns.addr, group, topic})
	j.do(t, "push", "j", ns.addr, group, topic, "*", "cluster", "first")
	all := func() map[string]bool {
		union := map[string]bool{}
		for _, r := range s.all() {
			union[r.body] = true
		}
		for _, r := range parseReceived(t, j.do(t, "seen", "j")) {
			union[r.body] = true
		}
		for _, body := range bodies() {
			union[body] = true
		}
		return union
	}
	killed := false
	for round := range rounds {
		j.do(t, "send", "sync", topic, "m"+strconv.Itoa(round)+"-", strconv.Itoa(each), "0")
		if !killed && len(bodies()) > 100 {
			require.NoError(t, victim.Process.Kill())
			_ = victim.Wait()
			killed = true
		}
	}
	require.True(t, killed, "the victim got %d messages", len(bodies()))
	eventually(t, patience, j, "all messages", func() bool { return len(all()) >= 4+rounds*each })
	require.Len(t, all(), 4+rounds*each)
}

// TestABrokersRestartSkipsNothing stops and starts the broker under a mixed group that begins at the end of queues: ours, and the
// real 4.9.7. R-G-28, R-G-29.
func TestABrokersRestartSkipsNothing(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	kinds := []string{"ours"}
	if os.Getenv("INTEROP") == "all" {
		kinds = append(kinds, "4.9.7", "5.3.3")
	}
	for i, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			ns := startOurs(t, namesrv.Options{})
			ready := func() bool { return len(ns.brokers(t, "TBW102")) == 1 }
			if i == 0 {
				b := startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()})
				restarted(t, ns.addr, ready, func() { b.stop(t); b.start(t) })
				return
			}
			dir := t.TempDir()
			settings := map[string]string{"storePathRootDir": dir, "storePathCommitLog": filepath.Join(dir, "commitlog")}
			p := wireLines()[i].startBroker(t, ns.addr, settings)
			restarted(t, ns.addr, ready, func() {
				p.signal(t, syscall.SIGTERM)
				select {
				case <-p.gone:
				case <-time.After(patience):
					t.Fatal("the real broker does not stop")
				}
				eventually(t, patience, p, "goodbye", func() bool { return !ready() })
				p = wireLines()[i].startBroker(t, ns.addr, settings)
			})
		})
	}
}

// restarted is the same for each kind of broker.
func restarted(t *testing.T, addr string, ready func() bool, restart func()) {
	t.Helper()
	const topic, group = "TopicRestart", "CGR"
	j := wireLines()[1].startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	eventually(t, patience, j, "registration", ready)
	j.do(t, "producer", addr, "PG")
	j.do(t, "send", "sync", topic, "seed-", "8", "0")
	s := &ourSeen{}
	o := ourConsumer(addr, group, topic, s)
	o.From = consumer.FromLast
	startOurConsumer(t, o)
	j.do(t, "push", "j", addr, group, topic, "*", "cluster", "last")
	union := func() int {
		bodies := map[string]bool{}
		for _, r := range s.all() {
			bodies[r.body] = true
		}
		for _, r := range parseReceived(t, j.do(t, "seen", "j")) {
			bodies[r.body] = true
		}
		return len(bodies)
	}
	eventually(t, patience, j, "the seed", func() bool { return union() == 8 }) // it is in memory, so it is not skipped
	rounds := 1
	if os.Getenv("INTEROP") == "all" {
		rounds = 2
	}
	for round := range rounds {
		restart()
		eventually(t, patience, j, "registration", ready)
		j.do(t, "send", "sync", topic, "after"+strconv.Itoa(round)+"-", "40", "0")
		eventually(t, patience, j, "what was sent after the restart", func() bool { return union() == 8+40*(round+1) })
	}
}

// TestJavaRespectsOurLocksAndOursItsLocks has an orderly member of ours hold a queue while a Java member joins: until the listener has
// returned, the Java member gets nothing of that queue. Then queues go to and fro under load: nothing is lost, and each member gets
// each queue in order. R-G-30.
func TestJavaRespectsOurLocksAndOursItsLocks(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	lines := []wireLine{wireLines()[1]}
	if os.Getenv("INTEROP") == "all" {
		lines = wireLines()[1:]
	}
	for _, l := range lines {
		t.Run(l.version, func(t *testing.T) {
			ns := startOurs(t, namesrv.Options{})
			startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()})
			ordered(t, l, ns)
		})
	}
}

func ordered(t *testing.T, l wireLine, ns *ours) {
	t.Helper()
	const topic, group = "TopicOrder", "CGO"
	j := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	eventually(t, patience, j, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	j.do(t, "producer", ns.addr, "PG")
	j.do(t, "send", "ordered", topic, "seed-", "8", "0")
	release := make(chan struct{})
	s := &ourSeen{hold: func(r received) {
		if r.body == "held" || r.body == "seed-7" {
			<-release
		}
	}}
	o := ourConsumer(ns.addr, group, topic, s)
	o.Orderly = true
	c := startOurConsumer(t, o)
	eventually(t, patience, j, "the seed", func() bool { return len(s.all()) == 8 }) // queue 3 hangs in its last message
	j.do(t, "push", "j", ns.addr, group, topic, "*", "orderly", "first")
	eventually(t, patience, j, "ours to give queues up", func() bool { return len(queuesOf(c, topic)) == 2 })
	javaHas := func() map[int64]bool {
		has := map[int64]bool{}
		for _, r := range parseReceived(t, j.do(t, "seen", "j")) {
			has[r.queue] = true
		}
		return has
	}
	j.do(t, "send", "ordered", topic, "locked-", "8", "0")
	ours := map[int64]bool{}
	for _, q := range queuesOf(c, topic) {
		ours[int64(q.QueueID)] = true
	}
	if !ours[3] { // it went to Java, which must wait for the lock
		eventually(t, patience, j, "the other queue", func() bool { return len(javaHas()) == 1 })
		time.Sleep(2 * time.Second)
		require.False(t, javaHas()[3], "our listener still has a message of it")
	}
	close(release)
	eventually(t, patience, j, "all", func() bool { return len(s.all())+len(j.do(t, "seen", "j")) >= 16 })
	require.Equal(t, 16, len(s.all())+len(j.do(t, "seen", "j")), "nothing comes twice")

	for round := range 4 {
		j.do(t, "send", "ordered", topic, "m"+strconv.Itoa(round)+"-", "40", "0")
		if round == 1 {
			stopOurConsumer(t, c)
		}
		if round == 2 {
			c = startOurConsumer(t, o)
		}
	}
	bodies := func() int {
		union := map[string]bool{}
		for _, r := range append(s.all(), parseReceived(t, j.do(t, "seen", "j"))...) {
			union[r.body] = true
		}
		return len(union)
	}
	eventually(t, patience, j, "all messages", func() bool { return bodies() >= 8+8+4*40 })
	for _, list := range [][]received{s.all(), parseReceived(t, j.do(t, "seen", "j"))} {
		last := map[int64]int64{}
		for _, r := range list {
			if before, ok := last[r.queue]; ok {
				require.Greater(t, r.offset, before, "queue %d", r.queue)
			}
			last[r.queue] = r.offset
		}
	}
}
