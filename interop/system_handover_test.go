//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/properties"
	"github.com/rocketstore/rocketstore/namesrv"
)

// systemTurns are brokers that take turns on one directory, all with these settings.
type systemTurns struct {
	ns     *ours
	dir    string
	client *javaProcess
	kill   bool
}

func (s *systemTurns) settings() map[string]string {
	return map[string]string{
		"storePathRootDir": s.dir, "storePathCommitLog": filepath.Join(s.dir, "commitlog"), "messageDelayLevel": "1s 5s 12s 25s",
		"transactionCheckInterval": "3000", "transactionTimeOut": "3000", "transactionCheckMax": "1000",
	}
}

func (s *systemTurns) signal() syscall.Signal {
	if s.kill {
		return syscall.SIGKILL
	}
	return syscall.SIGTERM
}

// real runs f beside a real 4.9.7 broker.
func (s *systemTurns) real(t *testing.T, f func()) {
	t.Helper()
	p := wireLines()[1].startBroker(t, s.ns.addr, s.settings())
	eventually(t, patience, p, "registration", func() bool { return len(s.ns.brokers(t, "TBW102")) == 1 })
	f()
	p.signal(t, s.signal())
	<-p.gone
	eventually(t, patience, p, "goodbye", func() bool { return s.ns.brokers(t, "TBW102") == nil })
}

// ours runs f beside a broker of ours, which is a process of its own.
func (s *systemTurns) ours(t *testing.T, program string, f func()) {
	t.Helper()
	home := t.TempDir()
	text := fmt.Appendf(nil, "brokerName=broker-a\nlistenPort=10911\nnamesrvAddr=%s\n", s.ns.addr)
	for name, value := range s.settings() {
		text = properties.Append(text, name, value)
	}
	p := &brokerProcess{name: "broker-a", config: filepath.Join(home, "broker.conf"), program: program, log: &tail{}}
	require.NoError(t, os.WriteFile(p.config, text, 0o600))
	p.start(t)
	t.Cleanup(func() { p.end(t, syscall.SIGKILL) })
	eventually(t, patience, &javaProcess{log: p.log}, "registration", func() bool { return len(s.ns.brokers(t, "TBW102")) == 1 })
	f()
	p.end(t, s.signal())
	eventually(t, patience, &javaProcess{log: p.log}, "goodbye", func() bool { return s.ns.brokers(t, "TBW102") == nil })
}

// stored counts the messages of a topic, by body, in the directory as it lies.
func (s *systemTurns) stored(t *testing.T, topic string) map[string]int {
	t.Helper()
	store, err := rocketstore.Open(s.dir, &rocketstore.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close(context.Background())) }()
	counts := map[string]int{}
	for queue := range int32(8) {
		for r, err := range store.Messages(topic, queue, 0) {
			require.NoError(t, err)
			counts[string(r.Body)]++
		}
	}
	return counts
}

// TestWaitingMessagesOutliveTheHandOver takes one directory from a real 4.9.7 broker to ours and back to a real one, stopped and
// killed. Delayed messages come from whoever runs when they are due, half messages from whoever runs when a producer of their
// group answers; none comes twice after a clean stop. R-F-13, R-F-14, R-F-15, R-D-104, R-D-119, design.md section 4.
func TestWaitingMessagesOutliveTheHandOver(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	program := filepath.Join(t.TempDir(), "storectl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./storectl")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	client := wireLines()[1].startJava(t, t.TempDir(), true, "rocketstore.interop.SystemDriver")
	for _, kill := range []bool{false, true} {
		t.Run(map[bool]string{false: "stopped", true: "killed"}[kill], func(t *testing.T) {
			suffix := map[bool]string{false: "S", true: "K"}[kill]
			s := &systemTurns{ns: startOurs(t, namesrv.Options{}), dir: filepath.Join(t.TempDir(), "store"), client: client, kill: kill}
			topic := "TopicTurns" + suffix
			half := func(name, group, body string) { // whose producer goes away
				client.do(t, "tx", name+suffix, s.ns.addr, group+suffix, "unknown")
				client.do(t, "half", name+suffix, topic, body, "unknown")
				client.do(t, "end", name+suffix)
			}
			answers := func(name, group string, bodies ...string) { // one of the group comes, and knows
				client.do(t, "tx", name+suffix, s.ns.addr, group+suffix, "commit")
				client.do(t, "half", name+suffix, topic, "undone", "rollback")
				consumer := "see" + name + suffix
				client.do(t, "push", consumer, s.ns.addr, "CG"+name+suffix, topic, "cluster", "-1")
				eventually(t, patience, client, strings.Join(bodies, ", "), func() bool {
					seen := deliveries(t, client, consumer)
					return !slices.ContainsFunc(bodies, func(body string) bool { return len(of(seen, body)) == 0 })
				})
				client.do(t, "end", name+suffix)
				client.do(t, "stop", consumer)
			}
			s.real(t, func() {
				client.do(t, "producer", s.ns.addr, "P1"+suffix)
				client.do(t, "delay", topic, "delayed-short", "3")
				client.do(t, "delay", topic, "delayed-long", "4")
				half("a1", "GA", "half-early")
				half("b1", "GB", "half-late")
			})
			s.ours(t, program, func() {
				answers("a2", "GA", "half-early", "delayed-short")
				client.do(t, "producer", s.ns.addr, "P2"+suffix)
				client.do(t, "delay", topic, "delayed-ours", "3")
				half("b2", "GB", "half-ours")
			})
			s.real(t, func() {
				answers("b3", "GB", "half-late", "half-ours", "delayed-long", "delayed-ours")
			})
			counts := s.stored(t, topic)
			want := []string{"delayed-short", "delayed-long", "delayed-ours", "half-early", "half-late", "half-ours"}
			require.Len(t, counts, len(want), "%v", counts)
			for _, body := range want {
				require.Positive(t, counts[body], body)
				if !kill {
					require.Equal(t, 1, counts[body], body)
				}
			}
		})
	}
}
