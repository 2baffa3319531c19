//go:build interop

package interop_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/message"
)

// txRedo is the size of redo log files here: one file holds all, since 3.1.4 reads no other one when it makes the table anew.
const txRedo = 40_000

// javaCheck is one question of the real check-back.
type javaCheck struct {
	GroupHash    int32
	Number       int64
	Offset, Size int64
}

// checks runs one round of the real check-back, by place of the message. After an unclean stop 3.1.4 has two schedules for
// each file and asks twice.
func (j *jvm) checks(t *testing.T) (list map[int64]javaCheck, next int64) {
	t.Helper()
	var a struct {
		Checks     []javaCheck
		NextNumber int64
	}
	j.call(t, map[string]any{"cmd": "checks"}, &a)
	list = make(map[int64]javaCheck)
	for _, c := range a.Checks {
		list[c.Offset] = c
	}
	return list, a.NextNumber
}

// end ends transactions by the real store.
func (j *jvm) end(t *testing.T, offsets []int64, commit func(offset int64) bool) {
	t.Helper()
	var ends []map[string]any
	for _, o := range offsets {
		ends = append(ends, map[string]any{"offset": o, "commit": commit(o)})
	}
	var a struct{ Results []javaPut }
	j.call(t, map[string]any{"cmd": "end", "ends": ends}, &a)
	require.Len(t, a.Results, len(offsets))
	for _, r := range a.Results {
		require.True(t, r.OK, r.Status)
	}
}

// txBook is what both sides did.
type txBook struct {
	open      map[int64]*message.Message // by the prepared message's physical offset
	group     map[int64]string
	delivered []string // bodies of committed messages
}

func (b *txBook) offsets() []int64 {
	var all []int64
	for o := range b.open {
		all = append(all, o)
	}
	slices.Sort(all)
	return all
}

// settle notes ends: those whose place is even are committed.
func (b *txBook) settle(offsets []int64) {
	for _, o := range offsets {
		if committed(o) {
			b.delivered = append(b.delivered, string(b.open[o].Body))
		}
		delete(b.open, o)
	}
}

func committed(offset int64) bool { return offset%2 == 0 }

func prepared(who string, i int) *message.Message {
	group := []string{"PG_pay", "PG_库存"}[i%2]
	p, _ := message.NewProperties(message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, group,
		message.PropertyTags, "tag", message.PropertyKeys, fmt.Sprint(who, "-", i), "filler", strconv.Itoa(1<<(i%40))) // so that places are odd and even
	host := message.HostFrom(netip.MustParseAddrPort("127.0.0.1:10911"))
	return &message.Message{
		Topic: "Transactions", QueueID: int32(i % 2), SysFlag: message.FlagPrepared, BornTimestamp: 1_700_000_000_000, BornHost: host, StoreHost: host,
		Body: []byte(who + " " + strconv.Itoa(i)), Properties: p,
	}
}

func (b *txBook) prepare(m *message.Message, offset int64) {
	b.open[offset] = m
	b.group[offset], _ = m.Properties.Get(message.PropertyProducerGroup)
}

// endAll ends open transactions of a store.
func endAll(ctx context.Context, s *rocketstore.Store, offsets []int64) error {
	numbers := make(map[int64]int64)
	for tx, err := range s.OpenTransactions(ctx) {
		if err != nil {
			return err
		}
		numbers[tx.PhysicalOffset] = tx.Number
	}
	for _, o := range offsets {
		m, err := s.MessageAt(o)
		if err != nil {
			return err
		}
		group, _ := m.Properties.Get(message.PropertyProducerGroup)
		end := rocketstore.TransactionEnd{ProducerGroup: group, PreparedOffset: o, Number: numbers[o], Commit: committed(o)}
		if _, err := s.EndTransaction(ctx, end); err != nil {
			return fmt.Errorf("end of %d: %w", o, err)
		}
	}
	return nil
}

// checkOurs compares our open set and the delivered messages.
func (b *txBook) checkOurs(t *testing.T, s *rocketstore.Store) {
	t.Helper()
	var got []int64
	for tx, err := range s.OpenTransactions(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, message.HashString(b.group[tx.PhysicalOffset]), tx.GroupHash)
		got = append(got, tx.PhysicalOffset)
	}
	slices.Sort(got)
	require.Equal(t, b.offsets(), got)
	var bodies []string
	for q := range int32(2) {
		for r, err := range s.Messages("Transactions", q, 0) {
			require.NoError(t, err)
			bodies = append(bodies, string(r.Body))
		}
	}
	require.ElementsMatch(t, b.delivered, bodies)
}

// checkJava wants the real check-back to ask for exactly the open transactions.
func (b *txBook) checkJava(t *testing.T, j *jvm) (numbers map[int64]int64, next int64) {
	t.Helper()
	asked, next := j.checks(t)
	numbers = make(map[int64]int64)
	var offsets []int64
	for o, c := range asked {
		require.Equal(t, message.HashString(b.group[o]), c.GroupHash)
		offsets, numbers[o] = append(offsets, o), c.Number
	}
	slices.Sort(offsets)
	require.Equal(t, b.offsets(), offsets)
	return numbers, next
}

func txOptions() *rocketstore.Options {
	return &rocketstore.Options{
		Dialect: "3.1", SegmentSize: small.segment, QueueSegmentSize: small.queue, IndexSlots: small.indexSlots, IndexEntries: small.indexKeys,
		StateSegmentSize: 2400, RedoSegmentSize: txRedo, HoldDelayed: true,
	}
}

func openTransactional(t *testing.T, dir string) *rocketstore.Store {
	t.Helper()
	s, err := rocketstore.Open(dir, txOptions())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Abandon() })
	return s
}

// txTask is what one of our processes does: end what lies at Ends, prepare so many, and end those of them that Own names by
// ranges. Then it says so and puts ordinary messages until it is killed, or stops cleanly.
type txTask struct {
	Who     string
	Prepare int
	Own     [][2]int
	Ends    []int64
	Kill    bool
}

func (w txTask) run(dir string, out io.Writer) error {
	ctx := context.Background()
	s, err := rocketstore.Open(dir, txOptions())
	if err != nil {
		return err
	}
	if err := endAll(ctx, s, w.Ends); err != nil {
		return err
	}
	offsets := []int64{}
	plain := &message.Message{Topic: "Plain", Body: []byte(w.Who)}
	for i := range w.Prepare {
		r, err := s.Put(ctx, prepared(w.Who, i))
		if err != nil {
			return err
		}
		offsets = append(offsets, r.PhysicalOffset)
		if i%3 == 0 {
			if _, err := s.Put(ctx, plain); err != nil {
				return err
			}
		}
	}
	for _, own := range w.Own {
		if err := endAll(ctx, s, offsets[own[0]:own[1]]); err != nil {
			return err
		}
	}
	// 3.1.4 makes nothing anew of what lies before its checkpoint's file, so the derived files have to be there.
	_, end := s.Bounds()
	if err := s.WaitDispatched(ctx, end); err != nil {
		return err
	}
	if !w.Kill {
		if err := s.Close(ctx); err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(offsets)
	}
	if err := json.NewEncoder(out).Encode(offsets); err != nil {
		return err
	}
	for {
		if _, err := s.Put(ctx, plain); err != nil {
			return err
		}
	}
}

// ours has a process of its own do a task, and kills it (SIGKILL) while it writes if the task says so. It gives the places of
// what was prepared.
func (b *txBook) ours(t *testing.T, dir string, w txTask) []int64 {
	t.Helper()
	cmd, out, log := startChild(t, childTask{Dir: dir, Transactions: &w})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil && w.Kill {
		err = cmd.Process.Kill()
	}
	ended := cmd.Wait()
	require.NoError(t, err, "%s", log)
	require.Equal(t, w.Kill, ended != nil, "%v %s", ended, log)
	var offsets []int64
	require.NoError(t, json.Unmarshal(line, &offsets))
	for i, o := range offsets {
		b.prepare(prepared(w.Who, i), o)
	}
	b.settle(w.Ends)
	for _, own := range w.Own {
		b.settle(offsets[own[0]:own[1]])
	}
	return offsets
}

// TestTransactionsGoToTheRealStoreAndBack: what one side prepares the other resolves, over clean stops and kills of either.
// The real check-back on our directory asks for exactly the open ones, also after the real recovery; and what the real store
// numbered anew we have under the numbers of the messages again (R-B-65 to R-B-67).
func TestTransactionsGoToTheRealStoreAndBack(t *testing.T) {
	l := lines()[0]
	require.Equal(t, "3.1.4", l.version)
	settings := map[string]string{"tranRedoLogMapedFileSize": strconv.Itoa(txRedo), "checkTransactionMessageEnable": "true"}
	for _, h := range handovers(l) {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			b := &txBook{open: make(map[int64]*message.Message), group: make(map[int64]string)}
			j := startJVM(t, l)

			// We prepare, and resolve some.
			ours := b.ours(t, dir, txTask{Who: "ours", Prepare: 250, Own: [][2]int{{0, 110}, {120, 180}}, Kill: h.killOurs})

			// The real store asks for them, resolves some, and prepares more.
			j.open(t, dir, small, settings)
			numbers, next := b.checkJava(t, j)
			if !h.killOurs { // else it numbers anew
				require.EqualValues(t, 250, next)
				for i, o := range ours {
					if n, open := numbers[o]; open {
						require.EqualValues(t, i, n)
					}
				}
			}
			first := slices.Concat(ours[110:115], ours[240:])
			j.end(t, first, committed)
			b.settle(first)
			var java []int64
			var steps []step
			for i := range 120 {
				steps = append(steps, step{prepared("java", i)})
			}
			for _, p := range j.put(t, steps) {
				b.prepare(p.Message, p.PhysicalOffset)
				java = append(java, p.PhysicalOffset)
			}
			j.end(t, java[:60], committed)
			b.settle(java[:60])
			if !h.killOurs { // what it numbered anew it does not close in its table when the message carries another number
				b.checkJava(t, j)
			}
			if h.haltJava {
				j.halt(t)
			} else {
				j.shutdown(t)
			}

			// We resolve of both, and prepare more.
			s := openTransactional(t, dir)
			b.checkOurs(t, s)
			require.NoError(t, s.Close(t.Context()))
			b.ours(t, dir, txTask{Who: "again", Prepare: 20, Ends: slices.Concat(ours[115:120], ours[180:200], java[60:80]), Kill: h.killOurs})

			// The real store asks a last time.
			if h.haltJava {
				j = startJVM(t, l)
			}
			j.open(t, dir, small, settings)
			b.checkJava(t, j)
			j.shutdown(t)
			s = openTransactional(t, dir)
			b.checkOurs(t, s)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}
