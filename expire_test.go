package rocketstore_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/txstate"
)

// putSome puts messages into three queues: Old/0 has only the first ten, A/0 and B/1 share the rest.
func putSome(t *testing.T, s *rocketstore.Store, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		topic, queue := "A", int32(0)
		switch {
		case i < 10:
			topic = "Old"
		case i%3 == 0:
			topic, queue = "B", 1
		}
		_, err := s.Put(t.Context(), msg(topic, queue, fmt.Sprint("body ", i), "tag", fmt.Sprint("key-", i)))
		require.NoError(t, err)
	}
}

// filesOf lists the files and folders of a store, but those that hold no messages.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, p)
		require.NoError(t, err)
		if rel = filepath.ToSlash(rel); rel != "." && !strings.HasPrefix(rel, "config") && strings.Contains(rel, "/") {
			names = append(names, rel)
		}
		return nil
	}))
	return names
}

// above is what of a reading lies at or behind a physical offset.
func above(all map[string]map[int64]int64, start int64) map[string]map[int64]int64 {
	rest := make(map[string]map[int64]int64)
	for q, units := range all {
		for at, physical := range units {
			if physical >= start {
				if rest[q] == nil {
					rest[q] = make(map[int64]int64)
				}
				rest[q][at] = physical
			}
		}
	}
	return rest
}

// checkExpired checks that a store has of all only what lies from its start on, by every way to read, and that queue
// offsets go on.
func checkExpired(t *testing.T, s *rocketstore.Store, all map[string]map[int64]int64) {
	t.Helper()
	start, _ := s.Bounds()
	rest := above(all, start)
	require.Equal(t, rest, readQueues(t, s))
	for name, units := range all {
		topic, id, _ := strings.Cut(name, "/")
		queue, _ := strconv.ParseInt(id, 10, 32)
		first, end := int64(len(units)), int64(len(units))
		for at := range rest[name] {
			first = min(first, at)
		}
		get := func(offset int64) (rocketstore.GetStatus, int64) {
			g, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: topic, QueueID: int32(queue), Offset: offset})
			require.NoError(t, err)
			g.Release()
			require.Equal(t, first, g.Min, name)
			require.Equal(t, end, g.Max, name)
			return g.Status, g.Next
		}
		for _, below := range []int64{0, first / 2, first - 1} {
			if below >= 0 && below < first {
				status, next := get(below)
				require.Equal(t, rocketstore.OffsetTooSmall, status)
				require.Equal(t, first, next)
			}
		}
		if first < end {
			status, _ := get(first)
			require.Equal(t, rocketstore.Found, status)
		}
		res, err := s.Put(t.Context(), msg(topic, int32(queue), "next", "", ""))
		require.NoError(t, err)
		require.Equal(t, end, res.QueueOffset, name)
		all[name][end] = res.PhysicalOffset
	}
}

// checkKeys checks that each of the first n messages is found by its key while it is there, and not when it is gone.
func checkKeys(t *testing.T, s *rocketstore.Store, n int) {
	t.Helper()
	start, _ := s.Bounds()
	have := make(map[string]int64)
	for r, err := range s.Records(start) {
		require.NoError(t, err)
		if key := message.Lookup(r.Properties, message.PropertyKeys); key != nil {
			have[string(r.Topic)+"#"+string(key)] = r.PhysicalOffset
		}
	}
	require.NotEmpty(t, have)
	found := make(map[string]int64)
	for i := range n {
		for _, topic := range []string{"Old", "A", "B"} {
			key := fmt.Sprint("key-", i)
			for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: topic, Key: key}) {
				require.NoError(t, err)
				found[topic+"#"+key] = r.PhysicalOffset
			}
		}
	}
	require.Equal(t, have, found)
}

// What hangs on the log follows it: queues, index, minimum offsets; what a dry run lists is what goes (R-G-18, R-G-19,
// R-E-045). The store is as trusted after a clean stop, and as whole after a kill, as without.
func TestExpireCascades(t *testing.T) {
	dir := golden.TempDir(t)
	o := small()
	o.SegmentSize = 4096
	s := open(t, dir, o)
	putSome(t, s, 0, 300)
	all := readQueues(t, s)
	_, end := s.Bounds()
	files := func() []string { // but for the segment that is made ahead, sooner or later
		ahead := "commitlog/" + mappedfile.SegmentName(end-end%4096+4096)
		return slices.DeleteFunc(filesOf(t, dir), func(name string) bool { return name == ahead })
	}
	before := files()
	want := rocketstore.ExpireOptions{MaxBytes: 5 * 4096, DryRun: true}
	dry, err := s.Expire(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, before, files())
	require.Equal(t, all, readQueues(t, s))

	want.DryRun = false
	done, err := s.Expire(t.Context(), want)
	require.NoError(t, err)
	require.ElementsMatch(t, dry.Files, done.Files)
	dry.Files, done.Files = nil, slices.Clip(done.Files)
	gone := done.Files
	done.Files = nil
	require.Equal(t, dry, done)
	start, _ := s.Bounds()
	require.Equal(t, start, done.LogStart)
	require.Equal(t, []string{"consumequeue/Old/0"}, done.Queues)
	after := files()
	lost := 0
	for _, units := range all {
		for _, physical := range units {
			if physical < start {
				lost++
			}
		}
	}
	require.EqualValues(t, lost, done.Messages)
	kinds := make(map[string]int)
	for _, f := range gone {
		require.NotContains(t, after, f.Name)
		require.Contains(t, before, f.Name)
		require.Positive(t, f.Bytes)
		kinds[strings.Split(f.Name, "/")[0]]++
	}
	require.Len(t, kinds, 3, "%v", kinds)
	require.Len(t, before, len(after)+len(gone)+2) // and the two folders of the queue
	checkKeys(t, s, 300)
	checkExpired(t, s, all)
	again, err := s.Expire(t.Context(), rocketstore.ExpireOptions{})
	require.NoError(t, err)
	require.Empty(t, again.Files)

	require.NoError(t, s.Close(t.Context()))
	s = open(t, dir, nil)
	require.True(t, s.Report().Trusted)
	require.Empty(t, s.Report().Warnings)
	checkKeys(t, s, 300)
	checkExpired(t, s, all)
	putSome(t, s, 300, 320)
	all = merged(all, readQueues(t, s))
	require.NoError(t, s.Abandon())
	s = open(t, dir, nil)
	require.True(t, s.Report().Unclean)
	checkKeys(t, s, 320)
	checkExpired(t, s, all)
	require.NoError(t, s.Close(t.Context()))
}

// merged adds what was read later.
func merged(all, now map[string]map[int64]int64) map[string]map[int64]int64 {
	for q, units := range now {
		maps.Copy(all[q], units)
	}
	return all
}

// A kill between any two steps of a deletion leaves a store that recovery takes as it is, and the rest follows with the
// next run (R-G-18, R-E-073).
func TestKillBetweenTheStepsOfDeletion(t *testing.T) {
	dir := golden.TempDir(t)
	var copies []string
	o := small()
	o.SegmentSize = 4096
	o.Retention.OnDelete = func([]string) { copies = append(copies, golden.Copy(t, dir)) }
	s := open(t, dir, o)
	putSome(t, s, 0, 200)
	all := readQueues(t, s)
	_, err := s.Expire(t.Context(), rocketstore.ExpireOptions{MaxBytes: 3 * 4096})
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	final := filesOf(t, dir)
	require.GreaterOrEqual(t, len(copies), 6)
	for _, c := range copies {
		s := open(t, c, nil)
		require.True(t, s.Report().Unclean)
		checkKeys(t, s, 200)
		_, err := s.Expire(t.Context(), rocketstore.ExpireOptions{MaxBytes: 3 * 4096})
		require.NoError(t, err)
		require.Equal(t, withoutIndex(final), withoutIndex(filesOf(t, c))) // that is made again after a kill
		checkExpired(t, s, copyOf(all))
		require.NoError(t, s.Close(t.Context()))
	}
}

func withoutIndex(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.HasPrefix(n, "index/") })
}

func copyOf(all map[string]map[int64]int64) map[string]map[int64]int64 {
	c := make(map[string]map[int64]int64)
	for q, units := range all {
		c[q] = maps.Clone(units)
	}
	return c
}

// Files of the state table and the redo log go with the messages they are about, never one with an open transaction whose
// message is there; numbers and open transactions are the same after a clean stop and after a kill (R-B-61, R-B-62, R-B-52).
func TestExpireKeepsOpenTransactionsOfTheStateTable(t *testing.T) {
	t.Parallel()
	for segments := range int64(4) {
		t.Run(strconv.FormatInt(segments+1, 10), func(t *testing.T) { expireTransactions(t, (segments+1)*4096) })
	}
}

func expireTransactions(t *testing.T, keep int64) {
	dir := golden.TempDir(t)
	s := open(t, dir, &rocketstore.Options{
		Dialect: "3.1", SegmentSize: 4096, QueueSegmentSize: 400, IndexSlots: 50, IndexEntries: 40,
		StateSegmentSize: 4 * txstate.RecordSize, RedoSegmentSize: 100,
	})
	var prepared []rocketstore.PutResult
	ended := make(map[int64]bool)
	for i := range 120 {
		m := msg("T", 0, fmt.Sprint("body ", i), "", "")
		m.Properties, _ = m.Properties.Set("TRAN_MSG", "true")
		m.Properties, _ = m.Properties.Set("PGROUP", "g")
		res, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		require.EqualValues(t, i, res.QueueOffset)
		prepared = append(prepared, res)
		if i%5 == 2 {
			_, err := s.EndTransaction(t.Context(), rocketstore.TransactionEnd{
				ProducerGroup: "g", PreparedOffset: res.PhysicalOffset, Number: res.QueueOffset, Commit: i%2 == 0,
			})
			require.NoError(t, err)
			ended[res.PhysicalOffset] = true
		}
	}
	dry, err := s.Expire(t.Context(), rocketstore.ExpireOptions{MaxBytes: keep, DryRun: true})
	require.NoError(t, err)
	done, err := s.Expire(t.Context(), rocketstore.ExpireOptions{MaxBytes: keep})
	require.NoError(t, err)
	require.Equal(t, dry, done)
	start, _ := s.Bounds()
	// A file of the table has four numbers; it goes when the last one's message is gone.
	var left []string
	for n := 0; n < len(prepared); n += 4 {
		if prepared[n+3].PhysicalOffset >= start {
			left = append(left, mappedfile.SegmentName(int64(n*txstate.RecordSize)))
		}
	}
	require.Less(t, len(left), 30)
	check := func() {
		t.Helper()
		entries, err := os.ReadDir(filepath.Join(dir, txstate.Dir))
		require.NoError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		require.Equal(t, left, names)
		var want, got []int64
		for _, p := range prepared {
			if p.PhysicalOffset >= start && !ended[p.PhysicalOffset] {
				want = append(want, p.QueueOffset)
			}
		}
		for tx, err := range s.OpenTransactions(t.Context()) {
			require.NoError(t, err)
			if tx.PhysicalOffset >= start {
				got = append(got, tx.Number)
			}
		}
		require.Equal(t, want, got)
		info, ok := s.StateTableInfo()
		require.True(t, ok)
		require.EqualValues(t, len(prepared), info.Next)
	}
	check()
	require.NoError(t, s.Close(t.Context()))
	foreign := golden.Copy(t, dir)
	require.NoError(t, os.Remove(filepath.Join(foreign, "config/rocketstore.json"))) // as if the original had stopped it
	f := open(t, foreign, &rocketstore.Options{IndexSlots: 50, IndexEntries: 40})
	require.False(t, f.Report().Trusted)
	require.Empty(t, f.Report().Warnings) // open ones whose messages went are nothing to mend
	require.NoError(t, f.Close(t.Context()))
	s = open(t, dir, nil)
	require.True(t, s.Report().Trusted)
	check()
	require.NoError(t, s.Abandon())
	s = open(t, dir, nil)
	check()
	last := prepared[len(prepared)-1]
	_, err = s.EndTransaction(t.Context(), rocketstore.TransactionEnd{ProducerGroup: "g", PreparedOffset: last.PhysicalOffset, Number: last.QueueOffset})
	require.NoError(t, err)
	ended[last.PhysicalOffset] = true
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, os.Remove(filepath.Join(dir, "config/rocketstore.json")))
	s = open(t, dir, &rocketstore.Options{IndexSlots: 50, IndexEntries: 40})
	require.False(t, s.Report().Trusted)
	check()
	_, err = s.EndTransaction(t.Context(), rocketstore.TransactionEnd{ProducerGroup: "g", PreparedOffset: prepared[1].PhysicalOffset, Number: 1})
	require.ErrorIs(t, err, rocketstore.ErrNoPrepared)
	require.NoError(t, s.Close(t.Context()))
}

// The minimum offsets after the oldest files of a real store went are what formats.md 13 and 5.4 make of its units.
func TestExpireOfRealStores(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rocketmq-3.1.4/clean", "rocketmq-4.9.7/clean", "rocketmq-5.3.3/clean", "rocketmq-5.3.3/lmq"} {
		t.Run(name, func(t *testing.T) {
			exp := golden.Load(t, name)
			segments := len(exp.Segments())
			for keep := 1; keep < segments; keep++ {
				dir := golden.Unpack(t, name)
				s := open(t, dir, &rocketstore.Options{HoldDelayed: true, Retention: rocketstore.Retention{KeepQueues: true}})
				all := readQueues(t, s)
				_, err := s.Expire(t.Context(), rocketstore.ExpireOptions{MaxBytes: int64(keep) * exp.Config().CommitLogFileSize})
				require.NoError(t, err)
				start, _ := s.Bounds()
				require.Equal(t, above(all, start), readQueues(t, s))
				for _, q := range exp.Queues() {
					g, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: q.Topic, QueueID: q.QueueID})
					require.NoError(t, err)
					g.Release()
					first, files := javaMinimum(q.Units, exp.Config().QueueFileSize/consumequeue.UnitSize, start)
					require.Equal(t, first, g.Min, "%s/%d", q.Topic, q.QueueID)
					entries, err := os.ReadDir(filepath.Join(dir, "consumequeue", q.Topic, strconv.Itoa(int(q.QueueID))))
					require.NoError(t, err)
					require.Len(t, entries, files)
				}
				require.NoError(t, s.Close(t.Context()))
				s = open(t, dir, &rocketstore.Options{HoldDelayed: true})
				require.True(t, s.Report().Trusted)
				require.Equal(t, above(all, start), readQueues(t, s))
				require.NoError(t, s.Close(t.Context()))
			}
		})
	}
}

// javaMinimum deletes files as ConsumeQueue.deleteExpiredFile does, and finds the minimum as correctMinOffset of 5.x does:
// where no unit qualifies it is the end.
func javaMinimum(units []golden.Unit, perFile, logMin int64) (first int64, files int) {
	var lists [][]golden.Unit
	for _, u := range units {
		if n := len(lists); n == 0 || lists[n-1][0].Index/perFile != u.Index/perFile {
			lists = append(lists, nil)
		}
		lists[len(lists)-1] = append(lists[len(lists)-1], u)
	}
	for len(lists) > 1 && lists[0][len(lists[0])-1].PhysicalOffset < logMin {
		lists = lists[1:]
	}
	for _, u := range lists[0] {
		if u.PhysicalOffset >= logMin && u.Size != 0x7FFFFFFF {
			return u.Index, len(lists)
		}
	}
	last := units[len(units)-1]
	return last.Index + 1, len(lists)
}

// Readers meet only whole messages or the new minimum while files go under them, and what they hold stays (R-E-006, R-B-63).
func TestReadersAndExpirySideBySide(t *testing.T) {
	s, err := rocketstore.Open("", &rocketstore.Options{
		FS: memfs.New(), SegmentSize: 4096, QueueSegmentSize: 400, IndexSlots: 50, IndexEntries: 40, MaxMapped: 16,
	})
	require.NoError(t, err)
	putSome(t, s, 0, 100)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	loop := func(f func(r *rand.Rand) error) {
		wg.Go(func() {
			for r := rand.New(rand.NewPCG(1, 2)); ; {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		loop(func(r *rand.Rand) error {
			g, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: "A", Offset: r.Int64N(400), Max: 4})
			if err != nil {
				return err
			}
			defer g.Release()
			for i := range g.Records {
				if !strings.HasPrefix(string(g.Records[i].Body), "body ") {
					return fmt.Errorf("%q", g.Records[i].Body)
				}
			}
			return nil
		})
	}
	loop(func(*rand.Rand) error {
		for _, err := range s.Messages("B", 1, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	loop(func(r *rand.Rand) error {
		for _, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: "A", Key: fmt.Sprint("key-", r.IntN(600))}) {
			if err != nil {
				return err
			}
		}
		_, err := s.OffsetAt(t.Context(), "A", 0, r.Int64N(1<<42))
		return err
	})
	for i := 100; i < 600; i += 20 {
		putSome(t, s, i, i+20)
		first, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: "A"})
		require.NoError(t, err)
		held, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: "A", Offset: first.Next})
		require.NoError(t, err)
		require.Contains(t, []rocketstore.GetStatus{rocketstore.OffsetTooSmall, rocketstore.Found}, first.Status)
		body := string(held.Records[0].Body)
		_, err = s.Expire(t.Context(), rocketstore.ExpireOptions{MaxBytes: 4096})
		require.NoError(t, err)
		require.Equal(t, body, string(held.Records[0].Body))
		held.Release()
		first.Release()
	}
	close(stop)
	wg.Wait()
	require.NoError(t, s.Close(t.Context()))
}

// The warning of a damaged note names it; its queues begin anew.
func TestDamagedNoteOfIdleQueuesIsTold(t *testing.T) {
	dir := golden.TempDir(t)
	require.NoError(t, open(t, dir, small()).Close(t.Context()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config/rocketstoreQueues.json"), []byte("{"), 0o600))
	s := open(t, dir, nil)
	require.Len(t, s.Report().Warnings, 1)
	require.Equal(t, recovery.KindIdleQueues, s.Report().Warnings[0].Kind)
	require.Equal(t, "config/rocketstoreQueues.json", s.Report().Warnings[0].File)
	require.NoError(t, s.Close(t.Context()))
}
