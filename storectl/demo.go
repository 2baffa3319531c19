package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
)

func (a *app) demo() *cobra.Command {
	var dialect string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job in a temporary directory: put, read, crash, recover, look",
		Long: `Show the main job in one go: make a store in a temporary directory, put messages on several
topics, read them back by queue, key, id and time, begin a transaction, stop as a crash would,
recover, commit the transaction, look at the directory, and send and consume through a name server and
a broker of its own. The directory stays, so that the
other verbs can be tried on it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "rocketstore-demo-")
			if err != nil {
				return err
			}
			d := &demo{app: a, dir: dir}
			d.opts = rocketstore.Options{
				Dialect: dialect, SegmentSize: 64 << 10, QueueSegmentSize: 2000, IndexSlots: 100, IndexEntries: 400,
				StateSegmentSize: 2400, RedoSegmentSize: 2000,
			}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&dialect, "dialect", "3.1", "3.1 (state table and redo log), 4.9 or 5.3 (half topic)")
	return cmd
}

// demo is one run of the demonstration.
type demo struct {
	*app
	dir      string
	opts     rocketstore.Options
	step     int
	prepared rocketstore.PutResult
}

func (d *demo) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{d.write, d.recover, d.look, d.serve, d.stay} {
		if err := step(ctx); err != nil {
			return errors.Join(fmt.Errorf("the demonstration failed in %s", d.dir), err)
		}
	}
	return nil
}

// title begins a step, in plain words.
func (d *demo) title(format string, args ...any) {
	d.step++
	fmt.Fprintf(d.out, "\n%d. %s\n", d.step, fmt.Sprintf(format, args...))
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "   %s\n", printable(fmt.Sprintf(format, args...)))
}

const (
	demoMessages = 120
	demoGroup    = "DemoGroup"
)

func demoMessage(i int) (*message.Message, error) {
	topics := []string{"Orders", "Payments", "Shipping"}
	p, err := message.NewProperties(message.PropertyKeys, fmt.Sprintf("id-%03d", i), message.PropertyTags, []string{"new", "paid", "sent"}[i%3])
	return &message.Message{Topic: topics[i%3], QueueID: int32(i / 3 % 2), Body: fmt.Appendf(nil, "message number %d", i), Properties: p}, err
}

// write makes the store, fills it, reads it in every way and stops it uncleanly.
func (d *demo) write(ctx context.Context) (err error) {
	d.title("A new store, dialect %s, in %s", d.opts.Dialect, d.dir)
	s, err := rocketstore.OpenContext(ctx, d.dir, &d.opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Abandon()) }()
	var last rocketstore.PutResult
	for i := range demoMessages {
		m, err := demoMessage(i)
		if err != nil {
			return err
		}
		if last, err = s.Put(ctx, m); err != nil {
			return err
		}
	}
	_, end := s.Bounds()
	d.say("%d messages on three topics of two queues each; the commit log ends at %d", demoMessages, end)
	if err := d.read(ctx, s, last); err != nil {
		return err
	}
	if err := d.prepare(ctx, s); err != nil {
		return err
	}
	d.title("The process dies: nothing is synced or closed, the file abort stays")
	return nil
}

func (d *demo) read(ctx context.Context, s *rocketstore.Store, last rocketstore.PutResult) error {
	d.title("The same messages, found by queue, by key, by id and by time")
	n := 0
	for r, err := range s.Messages("Orders", 1, 18) {
		if err != nil {
			return err
		}
		if n++; n == 1 {
			d.say("queue Orders/1 from offset 18 on begins with %q", r.Body)
		}
	}
	d.say("and holds %d messages from there", n)
	for r, err := range s.Query(ctx, rocketstore.QueryRequest{Topic: "Payments", Key: "id-007"}) {
		if err != nil {
			return err
		}
		d.say("key id-007 of topic Payments: %q at %d", r.Body, r.PhysicalOffset)
	}
	m, at, err := s.Lookup(last.MessageID())
	if err != nil {
		return err
	}
	d.say("message id %s: %q at %d", last.MessageID(), m.Body, at)
	offset, err := s.OffsetAt(ctx, "Shipping", 0, last.StoreTimestamp+1)
	if err != nil {
		return err
	}
	d.say("after the last message's time, queue Shipping/0 goes on at offset %d", offset)
	return nil
}

// prepare leaves a transaction open.
func (d *demo) prepare(ctx context.Context, s *rocketstore.Store) error {
	d.title("A transaction is begun: the message is stored, but no consumer sees it")
	p, err := message.NewProperties(message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, demoGroup)
	if err != nil {
		return err
	}
	d.prepared, err = s.Put(ctx, &message.Message{Topic: "Orders", QueueID: 0, Body: []byte("a transaction's message"), Properties: p})
	if err != nil {
		return err
	}
	d.say("prepared at %d with number %d", d.prepared.PhysicalOffset, d.prepared.QueueOffset)
	return nil
}

// recover opens the store again, ends the transaction and closes cleanly.
func (d *demo) recover(ctx context.Context) (err error) {
	d.title("The store is opened again: recovery finds the end of the log and makes the rest agree with it")
	s, err := rocketstore.OpenContext(ctx, d.dir, &d.opts)
	if err != nil {
		return err
	}
	r := s.Report()
	d.say("unclean stop: %t; the log was checked from %d (%s)", r.Unclean, r.Start, r.Reason)
	d.say("%d records checked, %d replayed into queues and index, the log ends at %d", r.Records, r.Dispatched, r.LogEnd)
	for _, w := range r.Warnings {
		d.say("warning: %s: %s", w.Kind, w.Text)
	}
	err = d.commit(ctx, s)
	return errors.Join(err, s.Close(ctx))
}

func (d *demo) commit(ctx context.Context, s *rocketstore.Store) error {
	d.title("The transaction has survived, and is committed now")
	for t, err := range s.OpenTransactions(ctx) {
		if err != nil {
			return err
		}
		d.say("open: number %d, prepared at %d", t.Number, t.PhysicalOffset)
	}
	res, err := s.EndTransaction(ctx, rocketstore.TransactionEnd{
		ProducerGroup: demoGroup, PreparedOffset: d.prepared.PhysicalOffset, Number: d.prepared.QueueOffset, Commit: true,
	})
	if err != nil {
		return err
	}
	var body []byte
	for r, err := range s.Messages("Orders", 0, res.QueueOffset) {
		if err != nil {
			return err
		}
		body = append(body[:0], r.Body...)
	}
	d.say("queue Orders/0 now ends with %q at offset %d; then the store is closed cleanly", body, res.QueueOffset)
	return nil
}

// look shows what identify has to say.
func (d *demo) look(ctx context.Context) error {
	d.title("The directory, as storectl identify shows it")
	dir, err := inspect.Open(os.DirFS(d.dir))
	if err != nil {
		return err
	}
	id, err := dir.Identify(ctx)
	if err != nil {
		return err
	}
	d.identity(id)
	return nil
}

// stay leaves the path.
func (d *demo) stay(context.Context) error {
	d.title("The first directory stays, so that you can go on")
	for _, verb := range []string{"identify", "cat", "queues", "index", "recover"} {
		fmt.Fprintf(d.out, "   go run ./storectl %s %s\n", verb, d.dir)
	}
	fmt.Fprintf(d.out, "   rm -r %s %s-broker\n", d.dir, d.dir)
	return nil
}
