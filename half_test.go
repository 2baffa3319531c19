package rocketstore_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// bodyOf reads the body of a golden record out of the file that it lies in.
func bodyOf(t *testing.T, dir string, r *golden.Record) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.File)))
	require.NoError(t, err)
	start, ok := mappedfile.ParseSegmentName(filepath.Base(r.File))
	require.True(t, ok)
	at := r.PhysicalOffset - start + 88 // IPv4
	body := b[at : at+int64(r.BodyLength)]
	sum := md5.Sum(body)
	require.Equal(t, r.BodyMD5, hex.EncodeToString(sum[:]))
	return body
}

// onHeap copies a directory.
func onHeap(t *testing.T, dir string) *memfs.FS {
	t.Helper()
	fsys := memfs.New()
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		inside, relErr := filepath.Rel(dir, name)
		if err = errors.Join(err, relErr); err != nil || d.IsDir() {
			return errors.Join(err, fsys.MkdirAll(filepath.ToSlash(inside), 0o750))
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		f, err := fsys.OpenFile(filepath.ToSlash(inside), os.O_RDWR|os.O_CREATE, 0o640)
		require.NoError(t, err)
		_, err = f.WriteAt(b, 0)
		return errors.Join(err, f.Close())
	}))
	return fsys
}

// storedProgress reads consumerOffset.json as text.
func storedProgress(t *testing.T, fsys *memfs.FS, topic string) int64 {
	t.Helper()
	f, err := fsys.OpenFile("config/consumerOffset.json", os.O_RDONLY, 0)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	text := make([]byte, size)
	_, err = f.ReadAt(text, 0)
	require.NoError(t, err)
	found := regexp.MustCompile(`"` + topic + `@CID_RMQ_SYS_TRANS":\{0:(\d+)`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(t, err)
	return n
}

// halfModel is the open set of a half-topic store by protocol.md 16, made of the real decoder's records and the stored
// progress.
func halfModel(t *testing.T, fsys *memfs.FS, dir string, records []golden.Record) []golden.OpenTransaction {
	t.Helper()
	halvesFrom, opsFrom := storedProgress(t, fsys, rocketstore.HalfTopicName), storedProgress(t, fsys, rocketstore.OpTopicName)
	named, newest := map[string]bool{}, map[string]int64{}
	key := func(r *golden.Record) string {
		return r.Properties[message.PropertyUniqueKey] + " " + r.Properties[message.PropertyProducerGroup]
	}
	for i := range records {
		switch r := &records[i]; {
		case r.Topic == rocketstore.OpTopicName && r.QueueOffset >= opsFrom:
			for n := range strings.SplitSeq(string(bodyOf(t, dir, r)), ",") {
				named[n] = true
			}
		case r.Topic == rocketstore.HalfTopicName:
			newest[key(r)] = r.QueueOffset
		}
	}
	open := []golden.OpenTransaction{}
	for i := range records {
		r := &records[i]
		if r.Topic != rocketstore.HalfTopicName || r.QueueOffset < halvesFrom || newest[key(r)] != r.QueueOffset ||
			named[strconv.FormatInt(r.QueueOffset, 10)] || named[r.Properties[message.PropertyPreparedQueueOffset]] {
			continue
		}
		open = append(open, golden.OpenTransaction{PhysicalOffset: r.PhysicalOffset, Number: r.QueueOffset})
	}
	return open
}

// The open transactions of stores that real 4.9.7 and 5.3.3 wrote are found exactly, also in those that were killed and
// whose stored progress is old, and survive a clean stop and a kill of ours.
func TestGoldenHalfTopicsHaveTheirOpenTransactions(t *testing.T) {
	stores := 0
	for _, name := range golden.Names("4.9.7", "5.3.3") {
		exp := golden.Load(t, name)
		if !slices.ContainsFunc(exp.Records(), func(r golden.Record) bool { return r.Topic == rocketstore.HalfTopicName }) {
			continue
		}
		if filepath.Base(name) == "abort-badcrc" {
			continue // not opened for writing: TestGoldenStoresOpenComplete
		}
		stores++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := golden.Unpack(t, name)
			fsys := onHeap(t, dir)
			want := halfModel(t, fsys, dir, wholePrefix(exp.Records()))
			require.NotEmpty(t, want)
			if !strings.Contains(name, "missing-cq") { // where only recovery makes the queues
				s := open(t, "", &rocketstore.Options{FS: fsys, ReadOnly: true})
				require.Equal(t, want, openSet(t, s))
				require.NoError(t, s.Close(t.Context()))
			}
			o := &rocketstore.Options{FS: fsys, HoldDelayed: true, NoIndex: true}
			for range 2 {
				s := open(t, "", o)
				require.Equal(t, want, openSet(t, s))
				require.NoError(t, s.Close(t.Context()))
			}
			require.Equal(t, want[0].Number, storedProgress(t, fsys, rocketstore.HalfTopicName))
			s := open(t, "", o)
			require.Equal(t, want, openSet(t, s))
			for i, tx := range want {
				_, err := s.EndTransaction(t.Context(), rocketstore.TransactionEnd{
					ProducerGroup: "GoldenTxGroup", PreparedOffset: tx.PhysicalOffset, Number: tx.Number, Commit: i%2 == 0,
				})
				require.NoError(t, err)
				require.Len(t, openSet(t, s), len(want)-i-1)
			}
			require.NoError(t, s.Abandon())
			s = open(t, "", o)
			require.Empty(t, openSet(t, s))
			require.NoError(t, s.Close(t.Context()))
		})
	}
	require.GreaterOrEqual(t, stores, 8)
}

// stored is what two records must share whatever their places are; properties count as a set.
type stored struct {
	record     commitlog.Record
	body       string
	topic      string
	properties map[string]string
}

func compared(r *commitlog.Record) stored {
	c := stored{*r, string(r.Body), string(r.Topic), message.Properties(r.Properties).Map()}
	c.record.Body, c.record.Topic, c.record.Properties = nil, nil, nil
	c.record.PhysicalOffset, c.record.QueueOffset, c.record.PreparedTransactionOffset, c.record.StoreTimestamp = 0, 0, 0, 0
	return c
}

// goldenMessage is the message as the client of the golden store sent it, from its half record.
func goldenMessage(t *testing.T, dir string, r *golden.Record) *message.Message {
	t.Helper()
	queue, err := strconv.Atoi(r.Properties[message.PropertyRealQueueID])
	require.NoError(t, err)
	m := &message.Message{
		Topic: r.Properties[message.PropertyRealTopic], QueueID: int32(queue), Flag: r.Flag, SysFlag: message.SysFlag(r.SysFlag) | message.FlagPrepared,
		BornTimestamp: r.BornTimestamp, BornHost: message.HostFrom(r.BornHost), StoreHost: message.HostFrom(r.StoreHost),
		ReconsumeTimes: r.ReconsumeTimes, Body: bodyOf(t, dir, r),
	}
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		switch name {
		case message.PropertyRealTopic, message.PropertyRealQueueID, message.PropertyTransactionID:
		default:
			m.Properties, err = m.Properties.Set(name, r.Properties[name])
			require.NoError(t, err)
		}
	}
	return m
}

func recordAt(t *testing.T, s *rocketstore.Store, offset int64) stored {
	t.Helper()
	for r, err := range s.Records(offset) {
		require.NoError(t, err)
		return compared(r)
	}
	t.Fatalf("no record at %d", offset)
	return stored{}
}

// Half, op and committed records are those that the real 4.9.7 and 5.3.3 wrote for the same messages (protocol.md 16, E1, E3).
func TestHalfOpAndCommitRecordsAreTheRealOnes(t *testing.T) {
	for version, line := range map[string]string{"4.9.7": "4.9", "5.3.3": "5.3"} {
		t.Run(version, func(t *testing.T) {
			dir := golden.Unpack(t, "rocketmq-"+version+"/clean")
			theirs := open(t, dir, &rocketstore.Options{ReadOnly: true})
			ours := inMemory(t, memfs.New(), line)
			commits, records := 0, golden.Load(t, "rocketmq-"+version+"/clean").Records()
			halves := make(map[int64]*golden.Record)
			for i := range records {
				r := &records[i]
				if r.Topic == rocketstore.HalfTopicName && r.Properties[message.PropertyTransactionCheckTimes] == "" {
					halves[r.PhysicalOffset] = r
				}
				half := halves[r.PreparedTransactionOffset]
				if half == nil || message.SysFlag(r.SysFlag).Transaction() != message.FlagCommit {
					continue
				}
				put, err := ours.Put(t.Context(), goldenMessage(t, dir, half))
				require.NoError(t, err)
				require.Equal(t, recordAt(t, theirs, half.PhysicalOffset), recordAt(t, ours, put.PhysicalOffset))
				end, err := ours.EndTransaction(t.Context(), rocketstore.TransactionEnd{
					ProducerGroup: half.Properties["PGROUP"], PreparedOffset: put.PhysicalOffset, Number: put.QueueOffset, Commit: true,
				})
				require.NoError(t, err)
				require.Equal(t, recordAt(t, theirs, r.PhysicalOffset), recordAt(t, ours, end.PhysicalOffset))
				m, err := ours.MessageAt(end.PhysicalOffset)
				require.NoError(t, err)
				require.Equal(t, put.PhysicalOffset, m.PreparedTransactionOffset)
				commits++
			}
			require.GreaterOrEqual(t, commits, 3)
			var op, realOp *stored
			for r, err := range ours.Messages(rocketstore.OpTopicName, 0, 0) {
				require.NoError(t, err)
				require.Equal(t, strconv.FormatInt(r.QueueOffset, 10), string(r.Body)) // the halves were ended in order
				c := compared(&r)
				op = &c
			}
			for r, err := range theirs.Messages(rocketstore.OpTopicName, 0, 0) {
				require.NoError(t, err)
				c := compared(&r)
				realOp = &c
			}
			for _, c := range []*stored{op, realOp} { // what differs is a number and its length, and the clock
				c.body, c.record.Size, c.record.BodyCRC, c.record.BornTimestamp = "", 0, 0, 0
				require.Equal(t, c.record.StoreHost, c.record.BornHost)
			}
			require.Equal(t, realOp, op)
		})
	}
}

// transactional is a message that begins a transaction, of group G.
func transactional(t *testing.T, body string, more ...string) *message.Message {
	t.Helper()
	p, err := message.NewProperties(append([]string{
		message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, "G", message.PropertyUniqueKey, "ID-" + body, message.PropertyTags, "tag",
	}, more...)...)
	require.NoError(t, err)
	return &message.Message{Topic: "T", QueueID: 3, Flag: 7, ReconsumeTimes: 2, SysFlag: message.FlagPrepared, Body: []byte(body), Properties: p}
}

func endOf(r rocketstore.PutResult, commit bool) rocketstore.TransactionEnd {
	return rocketstore.TransactionEnd{ProducerGroup: "G", PreparedOffset: r.PhysicalOffset, Number: r.QueueOffset, Commit: commit}
}

// inMemory is a store of a dialect on the heap.
func inMemory(t *testing.T, fsys *memfs.FS, line string) *rocketstore.Store {
	t.Helper()
	o := small()
	o.FS, o.Dialect, o.HoldDelayed = fsys, line, true
	o.StateSegmentSize, o.RedoSegmentSize = 240, 200
	return open(t, "", o)
}

// eachEngine runs a test for the state table and the half topic.
func eachEngine(t *testing.T, f func(t *testing.T, line string)) {
	for _, line := range []string{"3.1", "4.9", "5.3"} {
		t.Run(line, func(t *testing.T) { f(t, line) })
	}
}

// A commit delivers the message once, a rollback never, and a second end changes nothing; a restart of either kind neither.
// What does not fit the prepared message has an error of its own (R-B-15, R-B-48, R-B-49).
func TestTransactionsEndOnce(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		fsys := memfs.New()
		s := inMemory(t, fsys, line)
		plain, err := s.Put(t.Context(), msg("T", 3, "plain", "tag", ""))
		require.NoError(t, err)
		var put []rocketstore.PutResult
		for i := range 4 {
			r, err := s.Put(t.Context(), transactional(t, fmt.Sprint("tx ", i)))
			require.NoError(t, err)
			require.EqualValues(t, i, r.QueueOffset)
			put = append(put, r)
		}
		require.Equal(t, []string{"plain"}, bodies(t, s, "T", 3))
		for _, tt := range []struct {
			harm func(*rocketstore.TransactionEnd)
			want error
		}{
			{func(e *rocketstore.TransactionEnd) { e.ProducerGroup = "H" }, rocketstore.ErrWrongGroup},
			{func(e *rocketstore.TransactionEnd) { e.Number++ }, rocketstore.ErrWrongNumber},
			{func(e *rocketstore.TransactionEnd) { e.PreparedOffset++ }, rocketstore.ErrNoPrepared},
			{func(e *rocketstore.TransactionEnd) { e.PreparedOffset = 1 << 40 }, rocketstore.ErrNoPrepared},
			{func(e *rocketstore.TransactionEnd) { e.PreparedOffset = -1 }, rocketstore.ErrNoPrepared},
			{func(e *rocketstore.TransactionEnd) {
				e.PreparedOffset, e.Number = plain.PhysicalOffset, plain.QueueOffset
			}, rocketstore.ErrNoPrepared},
		} {
			e := endOf(put[0], true)
			tt.harm(&e)
			_, err := s.EndTransaction(t.Context(), e)
			require.ErrorIs(t, err, tt.want)
		}
		require.Len(t, openSet(t, s), 4)
		r, err := s.EndTransaction(t.Context(), endOf(put[0], true))
		require.NoError(t, err)
		require.EqualValues(t, 1, r.QueueOffset)
		_, err = s.EndTransaction(t.Context(), endOf(put[1], false))
		require.NoError(t, err)
		again := func(s *rocketstore.Store) {
			for i := range 2 {
				for _, commit := range []bool{true, false} {
					_, err := s.EndTransaction(t.Context(), endOf(put[i], commit))
					require.ErrorIs(t, err, rocketstore.ErrAlreadyEnded)
				}
			}
			require.Equal(t, []string{"plain", "tx 0"}, bodies(t, s, "T", 3))
			require.Equal(t, []golden.OpenTransaction{
				{PhysicalOffset: put[2].PhysicalOffset, Number: 2}, {PhysicalOffset: put[3].PhysicalOffset, Number: 3},
			}, openSet(t, s))
		}
		again(s)
		require.NoError(t, s.Abandon())
		s = inMemory(t, fsys, "")
		again(s)
		require.NoError(t, s.Close(t.Context()))
		s = inMemory(t, fsys, "")
		again(s)
		m, err := s.MessageAt(r.PhysicalOffset)
		require.NoError(t, err)
		require.EqualValues(t, 7, m.Flag)
		require.EqualValues(t, 2, m.ReconsumeTimes)
		require.Equal(t, put[0].PhysicalOffset, m.PreparedTransactionOffset)
		require.Equal(t, message.FlagCommit, m.SysFlag.Transaction())
		_, err = s.Put(t.Context(), transactional(t, "tx 4"))
		require.NoError(t, err)
		require.EqualValues(t, 4, openSet(t, s)[2].Number)
	})
}

// A re-send of a committed message to its retry topic carries the marks of a transaction and is none (protocol.md E4).
func TestRetriedTransactionIsAnOrdinaryMessage(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		s := inMemory(t, memfs.New(), line)
		m := transactional(t, "again")
		m.Topic, m.QueueID, m.SysFlag = "%RETRY%G", 0, m.SysFlag.WithTransaction(0)
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, []string{"again"}, bodies(t, s, "%RETRY%G", 0))
		require.Empty(t, openSet(t, s))
	})
}

// DELAY has no meaning for a transaction, and its commit is not delayed: in 3.1 it stays in the bytes of both records
// (protocol.md E2), a half message is stored without it (protocol.md 16).
func TestDelayOfATransactionIsIgnored(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		s := inMemory(t, memfs.New(), line)
		r, err := s.Put(t.Context(), transactional(t, "now", message.PropertyDelay, "3"))
		require.NoError(t, err)
		_, err = s.EndTransaction(t.Context(), endOf(r, true))
		require.NoError(t, err)
		require.Equal(t, []string{"now"}, bodies(t, s, "T", 3))
		want := ""
		if line == "3.1" {
			want = "3"
		}
		for m, err := range s.Messages("T", 3, 0) {
			require.NoError(t, err)
			require.Equal(t, want, string(message.Lookup(m.Properties, message.PropertyDelay)))
		}
	})
}

// foreignHalf stores a half message as a real broker would that checked the one at number: a copy with a higher count.
func foreignHalf(t *testing.T, s *rocketstore.Store, body string, more ...string) rocketstore.PutResult {
	t.Helper()
	m := transactional(t, body, append([]string{message.PropertyRealTopic, "T", message.PropertyRealQueueID, "3"}, more...)...)
	m.Topic, m.QueueID, m.SysFlag = rocketstore.HalfTopicName, 0, 0
	r, err := s.PutNow(t.Context(), m)
	require.NoError(t, err)
	return r
}

func foreignOp(t *testing.T, s *rocketstore.Store, tag, body string) {
	t.Helper()
	p, err := message.NewProperties(message.PropertyTags, tag)
	require.NoError(t, err)
	_, err = s.PutNow(t.Context(), &message.Message{Topic: rocketstore.OpTopicName, Body: []byte(body), Properties: p})
	require.NoError(t, err)
}

func opBodies(t *testing.T, s *rocketstore.Store) []string {
	t.Helper()
	return bodies(t, s, rocketstore.OpTopicName, 0)
}

// An answer for an older copy ends the newest one, and the message is delivered once; the original leaves the newest open
// and delivers twice (protocol.md 16).
func TestLateEndOfAnOlderCopyEndsTheNewest(t *testing.T) {
	fsys := memfs.New()
	s := inMemory(t, fsys, "4.9")
	first := foreignHalf(t, s, "a")
	copied := foreignHalf(t, s, "a", message.PropertyTransactionCheckTimes, "1")
	require.Equal(t, []golden.OpenTransaction{{PhysicalOffset: copied.PhysicalOffset, Number: 1}}, openSet(t, s))
	_, err := s.EndTransaction(t.Context(), endOf(first, true))
	require.NoError(t, err)
	for _, r := range []rocketstore.PutResult{first, copied} {
		_, err = s.EndTransaction(t.Context(), endOf(r, true))
		require.ErrorIs(t, err, rocketstore.ErrAlreadyEnded)
	}
	require.Equal(t, []string{"1"}, opBodies(t, s)) // 0 is before the progress
	require.Equal(t, []string{"a"}, bodies(t, s, "T", 3))
	require.NoError(t, s.Abandon())
	s = inMemory(t, fsys, "")
	require.Empty(t, openSet(t, s))
}

// With an open one before it the older copy is named too, since a real broker would ask about it again.
func TestLateEndNamesTheOlderCopyForARealBroker(t *testing.T) {
	s := inMemory(t, memfs.New(), "4.9")
	foreignHalf(t, s, "other")
	first := foreignHalf(t, s, "a")
	foreignHalf(t, s, "a", message.PropertyTransactionCheckTimes, "1")
	require.Len(t, openSet(t, s), 2)
	_, err := s.EndTransaction(t.Context(), endOf(first, false))
	require.NoError(t, err)
	require.Equal(t, []string{"2", "1"}, opBodies(t, s))
	require.Len(t, openSet(t, s), 1)
}

// The newest copy being ended, the older ones are not open, whatever the stored progress is.
func TestEndedCopyEndsTheOlderOnes(t *testing.T) {
	fsys := memfs.New()
	s := inMemory(t, fsys, "4.9")
	foreignHalf(t, s, "a")
	foreignHalf(t, s, "a", message.PropertyTransactionCheckTimes, "1")
	foreignOp(t, s, "d", "1")
	require.NoError(t, s.Abandon())
	s = inMemory(t, fsys, "")
	require.Empty(t, openSet(t, s))
}

// Op messages of 5.x hold lists; the first copy of one that is not to be asked yet ends all; ops of another tag count for
// nothing; a message of the same key after an end is a transaction of its own.
func TestForeignOpMessages(t *testing.T) {
	for _, live := range []bool{false, true} {
		t.Run(fmt.Sprint("live=", live), func(t *testing.T) {
			fsys := memfs.New()
			s := inMemory(t, fsys, "5.3")
			if live {
				require.Empty(t, openSet(t, s))
			}
			for _, b := range []string{"a", "b", "c", "d"} {
				foreignHalf(t, s, b)
			}
			foreignHalf(t, s, "d", message.PropertyPreparedQueueOffset, "3", message.PropertyCheckImmunityTime, "60")
			if live {
				require.Len(t, openSet(t, s), 4)
			}
			foreignOp(t, s, "d", "0,1,")
			foreignOp(t, s, "d", "3,")
			foreignOp(t, s, "x", "2")
			foreignOp(t, s, "d", "not a number,,-2,99999999999999999999")
			again := foreignHalf(t, s, "a")
			if !live {
				require.NoError(t, s.Abandon())
				s = inMemory(t, fsys, "")
			}
			want := []int64{2, again.QueueOffset}
			got := []int64{}
			for _, tx := range openSet(t, s) {
				got = append(got, tx.Number)
			}
			require.Equal(t, want, got)
		})
	}
}

// A message without a UNIQ_KEY, as clients of 3.1 send it, is a transaction like any other.
func TestHalfMessageWithoutAUniqueKey(t *testing.T) {
	s := inMemory(t, memfs.New(), "4.9")
	var put []rocketstore.PutResult
	for range 3 {
		m := transactional(t, "x")
		m.Properties = m.Properties.Delete(message.PropertyUniqueKey)
		r, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		put = append(put, r)
	}
	require.Len(t, openSet(t, s), 3)
	_, err := s.EndTransaction(t.Context(), endOf(put[1], true))
	require.NoError(t, err)
	require.Len(t, openSet(t, s), 2)
	require.Equal(t, []string{"x"}, bodies(t, s, "T", 3))
}

func offsetsOf(t *testing.T, s *rocketstore.Store) []int64 {
	t.Helper()
	h, ok := s.ConsumerOffset(rocketstore.HalfTopicName, rocketstore.TransactionGroup, 0)
	o, ok2 := s.ConsumerOffset(rocketstore.OpTopicName, rocketstore.TransactionGroup, 0)
	require.Equal(t, ok, ok2)
	if !ok {
		return nil
	}
	return []int64{h, o}
}

// The progress moves over what is finished in one run from the start: every op message that names a half one behind it
// stays behind its own.
func TestProgressMovesOverWhatIsFinished(t *testing.T) {
	fsys := memfs.New()
	s := inMemory(t, fsys, "4.9")
	var put []rocketstore.PutResult
	for i := range 600 {
		r, err := s.Put(t.Context(), transactional(t, strconv.Itoa(i)))
		require.NoError(t, err)
		put = append(put, r)
	}
	end := func(from, to int) {
		for _, r := range put[from:to] {
			_, err := s.EndTransaction(t.Context(), endOf(r, false))
			require.NoError(t, err)
		}
	}
	reopen := func() {
		require.NoError(t, s.Close(t.Context()))
		s = inMemory(t, fsys, "")
	}
	require.Nil(t, offsetsOf(t, s))
	end(5, 10)
	reopen()
	require.Equal(t, []int64{0, 0}, offsetsOf(t, s))
	end(0, 5)
	end(10, 599)
	require.Len(t, openSet(t, s), 1)
	reopen()
	require.Equal(t, []int64{599, 599}, offsetsOf(t, s))
	require.Len(t, openSet(t, s), 1)
	end(599, 600)
	reopen()
	require.Equal(t, []int64{600, 600}, offsetsOf(t, s))
	require.Empty(t, openSet(t, s))
}
