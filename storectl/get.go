package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

var (
	errGet      = errors.New("say what to get: --topic T --key K, or --id MSGID [--topic T], or --offset N, or --topic T --queue Q --queue-offset N, or --time T [--topic T [--queue Q]]")
	errNoRecord = errors.New("no such record")
)

// defaultScan bounds how much of the log is read where no index leads anywhere.
const defaultScan = 8 << 30

// getting is what get looks for.
type getting struct {
	find        inspect.FindOptions
	topic       string
	key         string
	id          string
	offset      int64
	queue       int32
	queueOffset int64
	time        int64
	limit       int64
}

func (a *app) get() *cobra.Command {
	var r reading
	var g getting
	var body string
	cmd := &cobra.Command{
		Use:   "get DIR --topic T --key K | --id MSGID | --offset N | --topic T --queue Q --queue-offset N | --time T",
		Short: "Print the records with a key or a message id, or at an offset, a place of a queue or a time",
		Long: `Print the records with a key, with a message id, at a physical offset or at an offset of a queue, or the first
one that was stored at a time or later.

A key is looked for in the index files, and what they lead to is compared with the
record itself. Where they lead to nothing the last --scan bytes of the log are read, and
a line on the standard error says how far that was. The message id is that of the broker
(store host and physical offset) or that of a client of 4.x and later (UNIQ_KEY). A place
of a queue is looked for in the queue's units first. The exit status is 1 when there is no
such record.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, err := g.what(cmd)
			if err != nil {
				return err
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				p, err := a.records(d, body)
				if err != nil {
					return err
				}
				g.find.Looked = &inspect.Looked{}
				began := time.Now()
				err = a.print(cmd.Context(), p, a.search(cmd, d, &g, what), &g)
				if !a.json || !g.find.Looked.Scanned() { // which says it else
					a.seen(d, began)
				}
				return err
			})
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&g.topic, "topic", "", "topic of the key, the id, the queue or the time")
	f.StringVar(&g.key, "key", "", "key: a word of KEYS, or UNIQ_KEY")
	f.StringVar(&g.id, "id", "", "message id")
	f.Int64Var(&g.offset, "offset", 0, "physical offset")
	f.Int32Var(&g.queue, "queue", 0, "queue id")
	f.Int64Var(&g.queueOffset, "queue-offset", 0, "offset in the queue")
	f.Var((*moment)(&g.time), "time", "store time: ms since 1970, or as 2006-01-02T15:04:05Z")
	f.Int64Var(&g.limit, "limit", 0, "stop after so many records; 0: with --time 1, else all")
	f.Int64Var(&g.find.MaxScan, "scan", defaultScan, "bytes of the log that are read where no index leads to the record, the last ones; 0: all")
	bodyFlag(cmd, &body)
	return cmd
}

// what says by which flag to look.
func (g *getting) what(cmd *cobra.Command) (string, error) {
	var by []string
	for _, name := range []string{"key", "id", "offset", "queue-offset", "time"} {
		if cmd.Flags().Changed(name) {
			by = append(by, name)
		}
	}
	queue := cmd.Flags().Changed("queue")
	if len(by) != 1 {
		return "", errGet
	}
	ok := false
	switch by[0] {
	case "key":
		ok = g.topic != "" && g.key != "" && !queue
	case "id":
		ok = g.id != "" && !queue
	case "offset":
		ok = g.topic == "" && !queue
	case "queue-offset":
		ok = g.topic != "" && queue
	case "time":
		ok = g.topic != "" || !queue
		if g.limit == 0 {
			g.limit = 1
		}
	}
	if !ok {
		return "", errGet
	}
	return by[0], nil
}

// search looks for the records.
func (a *app) search(cmd *cobra.Command, d *inspect.Dir, g *getting, by string) iter.Seq2[inspect.LogRecord, error] {
	f := inspect.Filter{Topic: g.topic, Key: g.key, ID: g.id}
	switch by {
	case "offset":
		return a.at(d, g.offset)
	case "queue-offset":
		return d.ByPlace(cmd.Context(), g.topic, g.queue, g.queueOffset, g.find, a.finding)
	case "time":
		if cmd.Flags().Changed("queue") {
			f.Queue = &g.queue
		}
		return d.FromTime(cmd.Context(), g.time, f, a.finding)
	}
	return d.Find(cmd.Context(), f, g.find, a.finding)
}

// at is the record at a physical offset, if there is one.
func (a *app) at(d *inspect.Dir, offset int64) iter.Seq2[inspect.LogRecord, error] {
	return func(yield func(inspect.LogRecord, error) bool) {
		if r, ok, err := d.RecordAt(offset, a.finding); ok || err != nil {
			yield(r, err)
		}
	}
}

// print prints what was found, and how far the log was read for it.
func (a *app) print(ctx context.Context, p *records, found iter.Seq2[inspect.LogRecord, error], g *getting) error {
	n := int64(0)
	for r, err := range found {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.trouble(err)
			continue
		}
		n++
		if err := p.print(&r); err != nil {
			return err
		}
		if n == g.limit {
			break
		}
	}
	if l := g.find.Looked; l.Scanned() {
		if a.json {
			a.note(struct {
				Looked *inspect.Looked `json:"looked"`
			}{l})
		} else {
			fmt.Fprintln(a.errOut, "looked:", l)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if n == 0 && a.status < statusTrouble { // else it is not known
		a.missing(errNoRecord)
	}
	return nil
}
