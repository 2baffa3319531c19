package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// Cases gives the matrix, group by group.
func Cases(o *Options) []Case {
	opts := o.withDefaults()
	var all []Case
	for _, group := range []func(*Options) []Case{
		deviceCases, appendCases, syncCases, rollCases, readCases, codecCases, queueCases, indexCases, txCases, storeCases,
	} {
		all = append(all, group(&opts)...)
	}
	return all
}

// policies are the ways to acknowledge: "none" leaves all to the kernel.
func policies() []policy {
	return []policy{{"none", commitlog.SyncInterval, 1 << 40}, {"interval", commitlog.SyncInterval, 0}, {"group", commitlog.SyncGroup, 0}}
}

type policy struct {
	name  string
	sync  commitlog.SyncPolicy
	pages int // that must be dirty for a sync in the background
}

func bodies(o *Options) []int {
	if o.Wide {
		return []int{128, 1 << 10, 4 << 10, 64 << 10}
	}
	return []int{1 << 10}
}

func writers(o *Options, p policy) []int {
	switch {
	case o.Wide:
		return []int{1, 4, 16, 64}
	case p.sync == commitlog.SyncGroup:
		return []int{1, 16}
	}
	return []int{1}
}

// appendCases append to the commit log alone.
func appendCases(o *Options) []Case {
	var cases []Case
	for _, mode := range []mappedfile.WriteMode{mappedfile.Mapped, mappedfile.Pwrite, mappedfile.Staged} {
		for _, p := range policies() {
			for _, body := range bodies(o) {
				for _, n := range writers(o, p) {
					cases = append(cases, Case{
						Name: fmt.Sprintf("append/write=%s/sync=%s/body=%d/writers=%d", modeName(mode), p.name, body, n), Ops: 1, Bytes: int64(body), Writers: n,
						open: func(ctx context.Context, dir string) (*Run, error) { return openLog(ctx, dir, o, mode, p, body, n) },
					})
				}
			}
		}
	}
	return cases
}

func openLog(ctx context.Context, dir string, o *Options, mode mappedfile.WriteMode, p policy, body, n int) (*Run, error) {
	fsys, err := mappedfile.OpenDir(dir, nil)
	if err != nil {
		return nil, err
	}
	log, err := commitlog.Open(fsys, &commitlog.Options{SegmentSize: o.SegmentSize, Sync: p.sync, FlushPages: p.pages, Write: mode})
	if err != nil {
		return nil, err
	}
	log.Start()
	w := Workload{Body: body}
	records := make([][]byte, n)
	for i := range records {
		if records[i], err = commitlog.AppendMessage(nil, w.Message(int64(i)), dialect.V49(), 0); err != nil {
			return nil, errors.Join(err, log.Close())
		}
	}
	return &Run{
		Step: func(writer int) error {
			_, err := log.Append(ctx, records[writer], nil, true)
			return err
		},
		Syncs: func() int64 { return log.Queue().Stats().Syncs },
		Close: log.Abandon,
	}, nil
}

// storeCases go through the whole store: a put counts when it is in its queue and in the index.
func storeCases(o *Options) []Case {
	var cases []Case
	for _, p := range policies()[1:] {
		for _, body := range bodies(&Options{Wide: true})[:3] {
			for _, n := range slices.Compact(slices.Sorted(slices.Values(append(writers(o, p), 4)))) {
				cases = append(cases, Case{
					Name: fmt.Sprintf("store/op=put/sync=%s/body=%d/writers=%d", p.name, body, n), Ops: 1, Bytes: int64(body), Writers: n,
					open: func(ctx context.Context, dir string) (*Run, error) { return openPuts(ctx, dir, o, p, body, n) },
				})
			}
		}
	}
	filled := int64(20_000)
	if o.Wide {
		filled = 1_000_000
	}
	type reading struct {
		name string
		ops  int64
		step func(ctx context.Context, s *rocketstore.Store) func(int) error
	}
	reads := []reading{{"query", 1, func(ctx context.Context, s *rocketstore.Store) func(int) error {
		return queries(ctx, s, uint64(filled))
	}}}
	for trust, name := range []string{"crc=on/decode=on", "crc=off/decode=on", "crc=off/decode=off"} {
		for _, copied := range []bool{false, true} {
			reads = append(reads, reading{
				fmt.Sprintf("get/batch=32/copied=%t/%s", copied, name), 32,
				func(ctx context.Context, s *rocketstore.Store) func(int) error {
					return gets(ctx, s, commitlog.Trust(trust), copied)
				},
			})
		}
	}
	for _, read := range reads {
		cases = append(cases, Case{
			Name: "store/op=" + read.name, Ops: read.ops, Bytes: 1 << 10,
			open: func(ctx context.Context, dir string) (*Run, error) {
				s, err := openStore(dir, o, rocketstore.Options{})
				if err != nil {
					return nil, err
				}
				if _, err := (&Workload{Body: 1 << 10}).Fill(ctx, s, filled); err != nil {
					return nil, errors.Join(err, s.Abandon())
				}
				// Opened again, it has nothing to write to the disk while it is read.
				if err := s.Close(ctx); err != nil {
					return nil, err
				}
				if s, err = openStore(dir, o, rocketstore.Options{}); err != nil {
					return nil, err
				}
				return &Run{Step: read.step(ctx, s), Close: s.Abandon}, nil
			},
		})
	}
	return append(cases, Case{
		Name: "store/op=transaction/line=3.1/body=1024", Ops: 1, Bytes: 2 << 10,
		open: func(ctx context.Context, dir string) (*Run, error) { return openTransactions(ctx, dir, o) },
	})
}

func openStore(dir string, o *Options, with rocketstore.Options) (*rocketstore.Store, error) {
	with.SegmentSize, with.IndexSlots, with.IndexEntries, with.HoldDelayed = o.SegmentSize, 1<<20, 4<<20, true
	return rocketstore.Open(dir, &with)
}

// differentKeys is how many different messages are put in turn, more than the caches hold slots of the index for.
const differentKeys = 1 << 16

// paddedCount has a cache line of its own.
type paddedCount struct {
	n int
	_ [56]byte
}

// dispatched waits until all that was put is in queues and index.
func dispatched(ctx context.Context, s *rocketstore.Store) func() error {
	return func() error {
		_, end := s.Bounds()
		return s.WaitDispatched(ctx, end)
	}
}

func openPuts(ctx context.Context, dir string, o *Options, p policy, body, n int) (*Run, error) {
	s, err := openStore(dir, o, rocketstore.Options{Sync: p.sync})
	if err != nil {
		return nil, err
	}
	w := Workload{Body: body}
	messages := make([]*message.Message, differentKeys)
	for i := range messages {
		messages[i] = w.Message(int64(i))
	}
	next := make([]paddedCount, n)
	return &Run{
		Step: func(writer int) error {
			next[writer].n += n
			_, err := s.Put(ctx, messages[(next[writer].n+writer)%len(messages)])
			return err
		},
		Finish: dispatched(ctx, s),
		Close:  s.Abandon,
	}, nil
}

// gets reads the queues one after the other in batches of 32, and copies the records out if asked.
func gets(ctx context.Context, s *rocketstore.Store, trust commitlog.Trust, copied bool) func(int) error {
	var sink []byte
	req := rocketstore.GetRequest{Topic: "Bench", Max: 32, Trust: trust}
	return func(int) error {
		res, err := s.Get(ctx, req)
		if err != nil {
			return err
		}
		for i := range res.Records {
			if copied {
				sink = append(sink[:0], res.Raw(i)...)
			}
		}
		req.Offset = res.Next
		if len(res.Records) < req.Max {
			req.Offset, req.QueueID = 0, (req.QueueID+1)%4
		}
		res.Release()
		return nil
	}
}

// queries asks for keys in no order; each is there.
func queries(ctx context.Context, s *rocketstore.Store, keys uint64) func(int) error {
	var w Workload
	state := uint64(3)
	return func(int) error {
		state = state*6364136223846793005 + 1442695040888963407
		key := w.Key(int64(state >> 33 % keys))
		for _, err := range s.Query(ctx, rocketstore.QueryRequest{Topic: "Bench", Key: key, Max: 1}) {
			return err
		}
		return fmt.Errorf("key %s is not in the index", key)
	}
}

func openTransactions(ctx context.Context, dir string, o *Options) (*Run, error) {
	s, err := openStore(dir, o, rocketstore.Options{Dialect: "3.1"})
	if err != nil {
		return nil, err
	}
	m := (&Workload{Body: 1 << 10}).Message(0)
	m.SysFlag = message.FlagPrepared
	m.Properties += message.PropertyTransactionPrepared + "\x01true\x02" + message.PropertyProducerGroup + "\x01group\x02"
	return &Run{
		Step: func(int) error {
			r, err := s.Put(ctx, m)
			if err == nil {
				_, err = s.EndTransaction(ctx, rocketstore.TransactionEnd{ProducerGroup: "group", PreparedOffset: r.PhysicalOffset, Number: r.QueueOffset, Commit: true})
			}
			return err
		},
		Finish: dispatched(ctx, s),
		Close:  s.Abandon,
	}, nil
}
