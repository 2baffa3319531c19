package rocketstore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

var txSeed = flag.Uint64("txseed", 0, "seed of the random transaction tests; 0: a new one")

// foldLog gives the bodies of the transactions that the records of the whole log leave open, and what is in the queues by
// body. It knows nothing of tables, redo logs or stored progress.
func foldLog(s *rocketstore.Store) (open []string, delivered map[string]int, err error) {
	start, _ := s.Bounds()
	prepared, delivered := make(map[int64]string), make(map[string]int)
	byNumber := make(map[string]int64) // of half messages
	key := func(body string) string { return "body " + body }
	for r, err := range s.Records(start) {
		if err != nil {
			return nil, nil, err
		}
		switch body := string(r.Body); {
		case string(r.Topic) == rocketstore.HalfTopicName:
			if older, ok := byNumber[key(body)]; ok {
				delete(prepared, older)
			}
			prepared[r.PhysicalOffset] = body
			byNumber[key(body)], byNumber[strconv.FormatInt(r.QueueOffset, 10)] = r.PhysicalOffset, r.PhysicalOffset
		case string(r.Topic) == rocketstore.OpTopicName:
			if string(message.Lookup(r.Properties, message.PropertyTags)) == "d" { // no CRC covers properties, and they may be torn
				delete(prepared, byNumber[body])
			}
		case r.SysFlag.Transaction() == message.FlagPrepared:
			prepared[r.PhysicalOffset] = body
		case s.Dialect().HasStateTable && r.SysFlag.Transaction() != 0: // in a half topic the op message alone counts
			delete(prepared, r.PreparedTransactionOffset)
		}
		if r.SysFlag.Queued() && string(r.Topic) == "T" {
			delivered[string(r.Body)]++
		}
	}
	return slices.Sorted(maps.Values(prepared)), delivered, nil
}

// openBodies are the bodies of what the store says is open.
func openBodies(ctx context.Context, s *rocketstore.Store) ([]string, error) {
	var open []string
	for tx, err := range s.OpenTransactions(ctx) {
		if err != nil {
			return nil, err
		}
		m, err := s.MessageAt(tx.PhysicalOffset)
		if err != nil {
			return nil, err
		}
		open = append(open, string(m.Body))
	}
	slices.Sort(open)
	return open, nil
}

// transactionModel is a store and what it should hold.
type transactionModel struct {
	t       *testing.T
	rt      *rapid.T
	line    string
	fsys    *memfs.FS
	checker *notebook
	store   *rocketstore.Store
	all     []rocketstore.PutResult
	open    map[int]bool // by place in all
	want    map[string]int
}

func (m *transactionModel) reopen() {
	m.store = checked(m.t, m.fsys, m.line, rocketstore.Checks{Checker: m.checker, Max: -1, InFlight: 3, MinAge: time.Second, Every: time.Minute})
}

func (m *transactionModel) body(i int) string { return fmt.Sprint("transaction ", i) }

func (m *transactionModel) prepare(*rapid.T) {
	r, err := m.store.Put(m.t.Context(), transactional(m.t, m.body(len(m.all))))
	require.NoError(m.rt, err)
	m.open[len(m.all)] = true
	m.all = append(m.all, r)
}

// end ends any transaction there ever was, by the place of its first copy.
func (m *transactionModel) end(rt *rapid.T) {
	if len(m.all) == 0 {
		return
	}
	i, commit := rapid.IntRange(0, len(m.all)-1).Draw(rt, "which"), rapid.Bool().Draw(rt, "commit")
	_, err := m.store.EndTransaction(m.t.Context(), endOf(m.all[i], commit))
	if !m.open[i] {
		require.ErrorIs(m.rt, err, rocketstore.ErrAlreadyEnded)
		return
	}
	require.NoError(m.rt, err)
	delete(m.open, i)
	if commit {
		m.want[m.body(i)]++
	}
}

func (m *transactionModel) plain(rt *rapid.T) {
	body := "plain " + strings.Repeat("x", rapid.IntRange(0, 2000).Draw(rt, "length"))
	_, err := m.store.Put(m.t.Context(), msg("T", 3, body, "tag", "key"))
	require.NoError(m.rt, err)
	m.want[body]++
}

// minute lets a round of checks pass, which asks about open transactions only.
func (m *transactionModel) minute(*rapid.T) {
	pass(time.Minute)
	for _, q := range m.checker.take() {
		i, err := strconv.Atoi(strings.TrimPrefix(q.body, "transaction "))
		require.NoError(m.rt, err)
		require.True(m.rt, m.open[i])
	}
}

func (m *transactionModel) kill(*rapid.T) {
	require.NoError(m.rt, m.store.Abandon())
	m.reopen()
}

func (m *transactionModel) close(*rapid.T) {
	require.NoError(m.rt, m.store.Close(m.t.Context()))
	m.reopen()
}

func (m *transactionModel) check(*rapid.T) {
	want := []string{}
	for i := range m.open {
		want = append(want, m.body(i))
	}
	slices.Sort(want)
	got, err := openBodies(m.t.Context(), m.store)
	require.NoError(m.rt, err)
	require.ElementsMatch(m.rt, want, got)
	logged, delivered, err := foldLog(m.store)
	require.NoError(m.rt, err)
	require.ElementsMatch(m.rt, want, logged)
	require.Equal(m.rt, m.want, delivered)
	for tx, err := range m.store.OpenTransactions(m.t.Context()) {
		require.NoError(m.rt, err)
		if m.line == "3.1" { // the numbering is kept for ever
			i := slices.IndexFunc(m.all, func(r rocketstore.PutResult) bool { return r.PhysicalOffset == tx.PhysicalOffset })
			require.Equal(m.rt, int64(i), tx.Number)
		}
	}
}

// Whatever is prepared, ended, checked, killed and reopened in whatever order: what is open is what the log says, each
// commit is in its queue once, and in a state table each number is for ever (R-B-50 to R-B-52, R-B-60).
func TestTransactionsFollowTheModel(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, line string) {
		synctest.Test(t, func(t *testing.T) {
			rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { // wrapped: a bubble has no deadline
				m := &transactionModel{t: t, rt: rt, line: line, fsys: memfs.New(), checker: newNotebook(), open: map[int]bool{}, want: map[string]int{}}
				m.reopen()
				rt.Repeat(map[string]func(*rapid.T){
					"prepare": m.prepare, "prepare another": m.prepare, "end": m.end, "end another": m.end, "plain": m.plain, "minute": m.minute,
					"kill": m.kill, "close": m.close, "": m.check,
				})
				require.NoError(t, m.store.Close(t.Context()))
			})
		})
	})
}

// cutWorkload puts, ends and checkpoints until the power fails.
func cutWorkload(s *rocketstore.Store, rnd *rand.Rand) error {
	ctx := context.Background()
	var open []rocketstore.PutResult
	for i := range 150 {
		var err error
		switch op := rnd.IntN(20); {
		case op < 9:
			p, _ := message.NewProperties(message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, "G", message.PropertyUniqueKey, strconv.Itoa(i))
			var r rocketstore.PutResult
			r, err = s.Put(ctx, &message.Message{Topic: "T", QueueID: 3, Body: []byte(strconv.Itoa(i)), Properties: p})
			open = append(open, r)
		case op < 16 && len(open) > 0:
			n := rnd.IntN(len(open))
			_, err = s.EndTransaction(ctx, endOf(open[n], rnd.IntN(2) == 0))
			open = slices.Delete(open, n, n+1)
		case op < 18:
			err = s.SaveConsumerOffsets() // the progress may reach the disk before the log does
		case op == 18:
			err = s.Checkpoint(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// After a power cut at any moment, with any part of what was not synced on the disk, the open transactions are those that
// the log that is left leaves open (R-B-57).
func TestPowerCutsLeaveTheOpenSetOfTheLog(t *testing.T) {
	seed := *txSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-txseed %d", seed)
	eachEngine(t, func(t *testing.T, line string) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range 6 {
			fsys := crashfs.New(memfs.New())
			o := small()
			o.FS, o.Dialect, o.HoldDelayed, o.NoIndex = fsys, line, true, true
			o.StateSegmentSize, o.RedoSegmentSize = 240, 200
			s, err := rocketstore.Open("", o)
			require.NoError(t, err)
			fsys.CrashAfter(fsys.Steps() + rnd.IntN(250))
			err = cutWorkload(s, rnd)
			require.True(t, err == nil || errors.Is(err, crashfs.ErrCrashed), "%v", err)
			fsys.Crash()
			snapshot := fsys.Snapshot()
			_ = s.Abandon()
			for range 8 {
				image := rnd.Uint64()
				checkImage(t, snapshot.Image(image), line, image)
			}
		}
	})
}

// The progress of the half topic is not stored before the log that it rests on is durable. A real broker stores it every
// five seconds, whatever the log has: planted here by a log that is not synced, that fault hides transactions whose ends a
// power cut took.
func TestProgressIsNotStoredAheadOfTheLog(t *testing.T) {
	for _, planted := range []bool{false, true} {
		fsys := crashfs.New(memfs.New())
		o := small()
		o.FS, o.Dialect, o.HoldDelayed, o.FlushEvery = fsys, "4.9", true, time.Hour
		s := open(t, "", o)
		put := prepare(t, s, 3)
		require.NoError(t, s.Sync())
		for _, r := range put {
			_, err := s.EndTransaction(t.Context(), endOf(r, false))
			require.NoError(t, err)
		}
		if planted {
			fsys.Ignore(crashfs.OpSyncRange, "")
			s.SetConsumerOffset(rocketstore.HalfTopicName, rocketstore.TransactionGroup, 0, 3)
		}
		require.NoError(t, s.SaveConsumerOffsets())
		fsys.Crash()
		image := fsys.Image(0)
		require.NoError(t, s.Abandon())
		o.FS = image
		s = open(t, "", o)
		open, err := openBodies(t.Context(), s)
		require.NoError(t, err)
		logged, _, err := foldLog(s)
		require.NoError(t, err)
		require.Empty(t, open)
		require.Len(t, logged, map[bool]int{true: 3, false: 0}[planted])
	}
}

func checkImage(t *testing.T, fsys mappedfile.FS, line string, image uint64) {
	t.Helper()
	for range 2 { // a recovery that was itself killed changes nothing (R-B-60)
		o := small()
		o.FS, o.Dialect, o.HoldDelayed, o.NoIndex = fsys, line, true, true
		o.StateSegmentSize, o.RedoSegmentSize = 240, 200
		o.Recovery.OnDamage, o.Recovery.StartAnew = recovery.CutAndKeep, true
		s, err := rocketstore.Open("", o)
		require.NoError(t, err, "image %d", image)
		got, err := openBodies(t.Context(), s)
		require.NoError(t, err, "image %d", image)
		want, _, err := foldLog(s)
		require.NoError(t, err, "image %d", image)
		require.ElementsMatch(t, want, got, "image %d", image)
		require.NoError(t, s.Abandon())
	}
}

// Ends from many producers, answers to checks and the rounds themselves may meet: each transaction is committed once.
func TestEndsAndChecksMayMeet(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		const producers, each = 4, 80
		var s *rocketstore.Store
		var delivered, late atomic.Int64
		end := func(offset, number int64) {
			_, err := s.EndTransaction(context.Background(), rocketstore.TransactionEnd{ProducerGroup: "G", PreparedOffset: offset, Number: number, Commit: true})
			switch {
			case err == nil:
				delivered.Add(1)
			case errors.Is(err, rocketstore.ErrAlreadyEnded), errors.Is(err, rocketstore.ErrClosed):
				late.Add(1)
			default:
				t.Error(err)
			}
		}
		n := newNotebook()
		n.answer = func(_ context.Context, r rocketstore.CheckRequest) error {
			if r.Record.Body[len(r.Record.Body)-1]%2 == 0 {
				end(r.PhysicalOffset, r.Number)
			}
			return nil
		}
		fsys := memfs.New()
		s = checked(t, fsys, line, rocketstore.Checks{Checker: n, Max: -1, Every: 2 * time.Millisecond, MinAge: time.Millisecond})
		var group sync.WaitGroup
		for p := range producers {
			group.Go(func() {
				for i := range each {
					r, err := s.Put(context.Background(), transactional(t, fmt.Sprint(p, "-", i)))
					if err != nil {
						t.Error(err)
						return
					}
					if i%3 > 0 {
						end(r.PhysicalOffset, r.QueueOffset)
						for _, err := range s.OpenTransactions(context.Background()) {
							if err != nil {
								t.Error(err)
							}
						}
					}
				}
			})
		}
		group.Wait()
		for left := true; left; { // one that is being ended is open until it is
			left = false
			for tx, err := range s.OpenTransactions(t.Context()) {
				require.NoError(t, err)
				end(tx.PhysicalOffset, tx.Number)
				left = true
			}
		}
		require.NoError(t, s.Close(t.Context()))
		s = checked(t, fsys, "", rocketstore.Checks{})
		open, err := openBodies(t.Context(), s)
		require.NoError(t, err)
		require.Empty(t, open)
		_, got, err := foldLog(s)
		require.NoError(t, err)
		for body, times := range got {
			require.Equal(t, 1, times, body)
		}
		require.Equal(t, producers*each, len(got)) //nolint:testifylint // not the whole map in the message
		require.EqualValues(t, len(got), delivered.Load())
		require.NoError(t, s.Close(t.Context()))
	})
}

// The log's first files may be deleted while transactions in them are ended and checked: what is left open afterwards is what
// the rest of the log leaves open (R-B-18, R-B-61 to R-B-63).
func TestEndsChecksAndDeletionMayMeet(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		fsys, n := memfs.New(), newNotebook()
		s := checked(t, fsys, line, rocketstore.Checks{Checker: n, Max: -1, Every: 10 * time.Millisecond, MinAge: time.Millisecond, InFlight: 50})
		n.answer = func(ctx context.Context, r rocketstore.CheckRequest) error {
			if r.Number%2 == 0 {
				_, err := s.EndTransaction(ctx, rocketstore.TransactionEnd{ProducerGroup: r.Group, PreparedOffset: r.PhysicalOffset, Number: r.Number, Commit: true})
				return err
			}
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Expire(context.Background(), rocketstore.ExpireOptions{MaxBytes: 5 * 8192}); err != nil {
					t.Error(err)
				}
			}
		})
		start := int64(0)
		for i := 0; i < 400 || start == 0; i++ {
			start, _ = s.Bounds()
			r, err := s.Put(t.Context(), transactional(t, strconv.Itoa(i)))
			require.NoError(t, err)
			if i%3 == 0 {
				_, err = s.EndTransaction(t.Context(), endOf(r, i%2 == 0))
				require.True(t, err == nil || errors.Is(err, rocketstore.ErrAlreadyEnded) || errors.Is(err, rocketstore.ErrNoPrepared), "%v", err)
			}
		}
		stop()
		group.Wait()
		require.NoError(t, s.Close(t.Context()))
		s = checked(t, fsys, "", rocketstore.Checks{})
		start, _ = s.Bounds()
		require.Positive(t, start)
		want, _, err := foldLog(s)
		require.NoError(t, err)
		var got []string
		for tx, err := range s.OpenTransactions(t.Context()) {
			require.NoError(t, err)
			if tx.PhysicalOffset >= start { // a state table may still have others
				m, err := s.MessageAt(tx.PhysicalOffset)
				require.NoError(t, err)
				got = append(got, string(m.Body))
			}
		}
		require.ElementsMatch(t, want, got)
		require.NoError(t, s.Close(t.Context()))
	})
}

// FuzzForeignHalfTopic stores whatever as half and op messages: it may not panic, nor hide a transaction of ours.
func FuzzForeignHalfTopic(f *testing.F) {
	f.Add("0,1,", "d", "3", "15", "60", "id")
	f.Add(",,-1,9223372036854775808", "d", "-1", "x", "99999999999999999999", "")
	f.Fuzz(func(t *testing.T, op, tag, first, times, immunity, unique string) {
		s := inMemory(t, memfs.New(), "4.9")
		foreign := &message.Message{Topic: rocketstore.HalfTopicName, Body: []byte("x")}
		named := &message.Message{Topic: rocketstore.OpTopicName, Body: []byte(op)}
		for _, p := range []struct {
			m           *message.Message
			name, value string
		}{
			{foreign, message.PropertyPreparedQueueOffset, first},
			{foreign, message.PropertyTransactionCheckTimes, times},
			{foreign, message.PropertyCheckImmunityTime, immunity},
			{foreign, message.PropertyUniqueKey, unique},
			{named, message.PropertyTags, tag},
		} {
			if with, err := p.m.Properties.Set(p.name, p.value); err == nil {
				p.m.Properties = with
			}
		}
		for _, m := range []*message.Message{foreign, named} {
			if _, err := s.PutNow(t.Context(), m); err != nil {
				require.ErrorIs(t, err, commitlog.ErrMessageIllegal)
			}
		}
		before := len(openSet(t, s))
		ours, err := s.Put(t.Context(), transactional(t, "ours"))
		require.NoError(t, err)
		require.Len(t, openSet(t, s), before+1)
		commit(t, s, ours)
		require.Len(t, openSet(t, s), before)
		require.NoError(t, s.Close(t.Context()))
	})
}
