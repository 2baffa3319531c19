package rocketstore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

var killRounds = flag.Int("kill.rounds", 5, "kill tests: how often a process under load is killed")

// killVariable holds, in the process that is to be killed, what it shall do.
const killVariable = "ROCKETSTORE_KILL_CHILD"

// victim is the task of a process that is to be killed: it opens the directory and puts with several goroutines, without end.
type victim struct {
	Dir   string
	Round int
	Write mappedfile.WriteMode
	Sync  rocketstore.SyncPolicy
	Table bool // the engine is the state table
}

func (v *victim) options() *rocketstore.Options {
	o := &rocketstore.Options{
		Dialect: "4.9", SegmentSize: 1 << 16, QueueSegmentSize: 2000, IndexSlots: 100, IndexEntries: 400, StateSegmentSize: 2400,
		RedoSegmentSize: 2000, Write: v.Write, Sync: v.Sync, HoldDelayed: true,
	}
	if v.Table {
		o.Transactions = rocketstore.StateTable
	}
	return o
}

func TestMain(m *testing.M) {
	task := os.Getenv(killVariable)
	if task == "" {
		os.Exit(m.Run())
	}
	var v victim
	err := json.Unmarshal([]byte(task), &v)
	if err == nil {
		err = v.run(os.Stdout)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// entry is a line of the ledger, which stands outside of the store: what a put answered, or that the end of a transaction begins.
type entry struct {
	What     string // "open", "put", "prepare", "ending" or "ended"
	Queue    int32
	Offset   int64 // queue offset, or number of the transaction
	Physical int64
	Body     string
}

// ledger writes one line at a time.
type ledger struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *ledger) note(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.out.Write(append(b, '\n'))
	return err
}

// writers is how many goroutines of a victim put, each into a queue of its own.
const writers = 4

func (v *victim) run(out io.Writer) error {
	l := &ledger{out: out}
	if err := l.note(entry{What: "open"}); err != nil {
		return err
	}
	s, err := rocketstore.Open(v.Dir, v.options())
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range int32(writers) {
		go func() { failed <- v.load(s, l, w) }()
	}
	go func() {
		for err == nil {
			err = s.Checkpoint(context.Background())
		}
		failed <- err
	}()
	return <-failed
}

// load puts messages, batches of them and transactions.
func (v *victim) load(s *rocketstore.Store, l *ledger, w int32) error {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(uint64(v.Round), uint64(w)))
	for n := 0; ; n++ {
		body := fmt.Sprintf("%d/%d/%d", v.Round, w, n)
		m := msg("Killed", w, body+strings.Repeat(".", rng.IntN(500)), "tag", "key"+body)
		var err error
		switch rng.IntN(8) {
		case 0:
			err = v.batch(ctx, s, l, m)
		case 1:
			err = v.transaction(ctx, s, l, m, rng.IntN(2) == 0)
		default:
			var r rocketstore.PutResult
			if r, err = s.Put(ctx, m); err == nil {
				err = l.note(entry{"put", w, r.QueueOffset, r.PhysicalOffset, string(m.Body)})
			}
		}
		if err != nil {
			return err
		}
	}
}

func (v *victim) batch(ctx context.Context, s *rocketstore.Store, l *ledger, m *message.Message) error {
	second := *m
	second.Body = append(slices.Clone(m.Body), "second"...)
	results, err := s.PutBatch(ctx, []*message.Message{m, &second})
	for i, r := range results {
		if err == nil {
			err = l.note(entry{"put", m.QueueID, r.QueueOffset, r.PhysicalOffset, string([][]byte{m.Body, second.Body}[i])})
		}
	}
	return err
}

// transaction prepares a message, and rolls it back if end.
func (v *victim) transaction(ctx context.Context, s *rocketstore.Store, l *ledger, m *message.Message, end bool) error {
	m = with(m, message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, producerGroup)
	r, err := s.Put(ctx, m)
	if err == nil {
		err = l.note(entry{"prepare", m.QueueID, r.QueueOffset, r.PhysicalOffset, ""})
	}
	if err != nil || !end {
		return err
	}
	if err := l.note(entry{"ending", m.QueueID, r.QueueOffset, r.PhysicalOffset, ""}); err != nil {
		return err
	}
	if _, err := s.EndTransaction(ctx, rocketstore.TransactionEnd{ProducerGroup: producerGroup, PreparedOffset: r.PhysicalOffset, Number: r.QueueOffset}); err != nil {
		return err
	}
	return l.note(entry{"ended", m.QueueID, r.QueueOffset, r.PhysicalOffset, ""})
}

// kill starts a victim and kills it after so many lines of its ledger, which it gives.
func (v *victim) kill(t *testing.T, lines int) []entry {
	task, err := json.Marshal(v)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), killVariable+"="+string(task))
	var trouble strings.Builder
	cmd.Stderr = &trouble
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var all []entry
	in := bufio.NewScanner(out)
	for in.Scan() {
		var e entry
		if json.Unmarshal(in.Bytes(), &e) != nil {
			break // cut by the kill, so not acknowledged
		}
		if all = append(all, e); len(all) == lines {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.Error(t, cmd.Wait())
	require.GreaterOrEqual(t, len(all), lines, "it ended too early: %s", &trouble)
	return all
}

// books compares stores with what all victims acknowledged.
type books struct {
	puts map[[2]int64]entry // by queue and offset
	open map[int64]string   // physical offset of a prepared message -> the last that is known of it
}

// enter takes up a victim's ledger. The end of a transaction is not waited for: staged, it may go with the process, and the
// transaction is open again.
func (b *books) enter(entries []entry, staged bool) {
	for _, e := range entries {
		if staged && e.What == "ended" {
			continue
		}
		switch e.What {
		case "put":
			b.puts[[2]int64{int64(e.Queue), e.Offset}] = e
		case "prepare", "ending", "ended":
			b.open[e.Physical] = e.What
		}
	}
}

// audit wants each acknowledged message in its place, no message twice, and of the transactions just those open that are.
func (b *books) audit(t *testing.T, s *rocketstore.Store) {
	seen := make(map[string]bool)
	found := 0
	for w := range int32(writers) {
		at := int64(0)
		for r, err := range s.Messages("Killed", w, 0) {
			require.NoError(t, err)
			require.Equal(t, at, r.QueueOffset)
			require.False(t, seen[string(r.Body)], "%s is there twice", r.Body)
			seen[string(r.Body)] = true
			if e, ok := b.puts[[2]int64{int64(w), at}]; ok {
				found++
				require.Equal(t, e.Body, string(r.Body), "queue %d at %d", w, at)
				require.Equal(t, e.Physical, r.PhysicalOffset)
			}
			at++
		}
	}
	require.Equal(t, len(b.puts), found, "acknowledged messages are lost")
	open := make(map[int64]bool)
	for tx, err := range s.OpenTransactions(t.Context()) {
		require.NoError(t, err)
		open[tx.PhysicalOffset] = true
	}
	for physical, what := range b.open {
		if what != "ending" {
			require.Equal(t, what == "prepare", open[physical], "transaction of %d: %s", physical, what)
		}
	}
	keys := 0
	for _, e := range b.puts {
		if keys++; keys > 20 {
			break
		}
		require.Contains(t, physicals(t, s, "key"+strings.TrimRight(strings.TrimSuffix(e.Body, "second"), ".")), e.Physical)
	}
}

func physicals(t *testing.T, s *rocketstore.Store, key string) (offsets []int64) {
	for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: "Killed", Key: key}) {
		require.NoError(t, err)
		offsets = append(offsets, r.PhysicalOffset)
	}
	return offsets
}

// A process under load that is killed loses nothing that it acknowledged, whatever the flush policy, and comes back each time;
// it is also killed while it recovers (R-E-083, R-E-077, R-E-078).
func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	rng := rand.New(rand.NewPCG(seed, 17))
	t.Logf("replay: go test -run '^%s$' -crash.seed=%d -kill.rounds=%d .", t.Name(), seed, *killRounds)
	v := victim{Dir: golden.TempDir(t), Table: rng.IntN(2) == 0}
	b := books{puts: make(map[[2]int64]entry), open: make(map[int64]string)}
	for v.Round = range *killRounds {
		// Staged bytes are the process's own, so there only what is synced outlives it.
		v.Write, v.Sync = mappedfile.WriteMode(rng.IntN(3)), rocketstore.SyncGroup
		if v.Write != mappedfile.Staged && rng.IntN(2) == 0 {
			v.Sync = rocketstore.SyncInterval
		}
		lines := 1 // in the middle of the opening
		if v.Round%5 != 3 {
			lines += rng.IntN(600)
		}
		b.enter(v.kill(t, lines), v.Write == mappedfile.Staged)
		s, err := rocketstore.Open(v.Dir, v.options())
		require.NoError(t, err)
		b.audit(t, s)
		if rng.IntN(3) == 0 {
			require.NoError(t, s.Close(t.Context()))
		} else {
			require.NoError(t, s.Abandon())
		}
	}
	t.Logf("%d rounds, %d messages and %d transactions acknowledged", *killRounds, len(b.puts), len(b.open))
}
