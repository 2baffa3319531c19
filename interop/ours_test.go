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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
)

// childVariable holds, in the process that is to be killed, what it shall do.
const childVariable = "ROCKETSTORE_INTEROP_CHILD"

// childTask is what a child does: open the directory and put a workload, with a checkpoint on the way. Its clock runs fast,
// so that the store times lie further apart than the three seconds that recovery goes back behind a checkpoint.
type childTask struct {
	Dir, Dialect          string
	Segment, Queue        int64
	IndexSlots, IndexKeys int32
	Who                   string
	Messages              int
	Checkpoint            int // after so many steps
	Batches, IPv6         bool
	UniqueKeys, Long      bool
	Transactions          *txTask // in place of the workload
}

// place is where a message went, one line of a child's output.
type place struct{ Physical, Queue, Time int64 }

func TestMain(m *testing.M) {
	task, member := os.Getenv(childVariable), os.Getenv(memberVariable)
	if task == "" && member == "" {
		os.Exit(runSuite(m))
	}
	run, text := runChild, task
	if member != "" {
		run, text = runMember, member
	}
	if err := run(text, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runChild(text string, out io.Writer) error {
	var task childTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	if task.Transactions != nil {
		return task.Transactions.run(task.Dir, out)
	}
	var ticks atomic.Int64
	base := time.Now().Add(-time.Hour).UnixMilli()
	s, err := rocketstore.Open(task.Dir, &rocketstore.Options{
		Dialect: task.Dialect, SegmentSize: task.Segment, QueueSegmentSize: task.Queue,
		IndexSlots: task.IndexSlots, IndexEntries: task.IndexKeys,
		Now: func() int64 { return base + 100*ticks.Add(1) },
	})
	if err != nil {
		return err
	}
	k := kind{batches: task.Batches, ipv6: task.IPv6, uniqueKeys: task.UniqueKeys, longTopics: task.Long}
	steps := workload(task.Who, task.Messages, k)
	for i, step := range steps {
		if i == task.Checkpoint {
			if err := s.Checkpoint(context.Background()); err != nil {
				return err
			}
		}
		places, err := putStep(context.Background(), s, step)
		if err != nil {
			return err
		}
		b, err := json.Marshal(places)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	select {} // until it is killed
}

func putStep(ctx context.Context, s *rocketstore.Store, step step) ([]place, error) {
	if len(step) == 1 {
		r, err := s.Put(ctx, step[0])
		return []place{{r.PhysicalOffset, r.QueueOffset, r.StoreTimestamp}}, err
	}
	results, err := s.PutBatch(ctx, step)
	var places []place
	for _, r := range results {
		places = append(places, place{r.PhysicalOffset, r.QueueOffset, r.StoreTimestamp})
	}
	return places, err
}

func openOurs(t *testing.T, l line, dir string, s shape) *rocketstore.Store {
	t.Helper()
	store, err := rocketstore.Open(dir, &rocketstore.Options{
		Dialect: l.dialect, SegmentSize: s.segment, QueueSegmentSize: s.queue, IndexSlots: s.indexSlots, IndexEntries: s.indexKeys,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

// putOurs puts a workload through our store and gives the messages with their places.
func putOurs(t *testing.T, s *rocketstore.Store, steps []step) []sent {
	t.Helper()
	var all []sent
	for _, step := range steps {
		places, err := putStep(t.Context(), s, step)
		require.NoError(t, err)
		all = append(all, located(step, places)...)
	}
	return all
}

func located(s step, places []place) []sent {
	var all []sent
	for i, m := range s {
		all = append(all, sent{m, places[i].Physical, places[i].Queue, places[i].Time})
	}
	return all
}

// killOurs lets a process of its own put a workload and kills it (SIGKILL) as soon as it has acknowledged the given number
// of steps; it goes on putting until the signal reaches it. It gives what was acknowledged, and the steps that were not.
func killOurs(t *testing.T, l line, dir string, s shape, who string, messages, acknowledged int, k kind) ([]sent, []step) {
	t.Helper()
	cmd, out, log := startChild(t, childTask{
		Dir: dir, Dialect: l.dialect, Segment: s.segment, Queue: s.queue, IndexSlots: s.indexSlots, IndexKeys: s.indexKeys,
		Who: who, Messages: messages, Checkpoint: acknowledged / 2, Batches: k.batches, IPv6: k.ipv6,
		UniqueKeys: k.uniqueKeys, Long: k.longTopics,
	})
	steps := workload(who, messages, k)
	var all []sent
	n := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var places []place
		if json.Unmarshal(lines.Bytes(), &places) != nil {
			break // cut by the kill, so not acknowledged
		}
		all = append(all, located(steps[n], places)...)
		if n++; n == acknowledged {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.Error(t, cmd.Wait())
	require.GreaterOrEqual(t, n, acknowledged, "the child ended too early: %s", log)
	return all, steps[n:]
}

// startChild starts a process that is to be killed.
func startChild(t *testing.T, what childTask) (*exec.Cmd, io.Reader, *tail) {
	t.Helper()
	task, err := json.Marshal(what)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	log := &tail{}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(task))
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, out, log
}
