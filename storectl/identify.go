package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

func (a *app) identify() *cobra.Command {
	var r reading
	cmd := &cobra.Command{
		Use:   "identify DIR",
		Short: "Say which line of RocketMQ wrote a directory, and what is in it",
		Long: `Say which line of RocketMQ wrote a directory and what shows it, whether it was stopped
cleanly, how large its files are, and what the log, the queues and the index hold.

With --json it is one object, its findings included.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.with(args[0], func(d *inspect.Dir) error {
				id, err := d.Identify(cmd.Context())
				if err != nil {
					return err
				}
				for _, f := range id.Findings {
					a.found(f)
				}
				if a.json {
					return a.line(id)
				}
				a.identity(id)
				for _, f := range id.Findings {
					a.finding(f)
				}
				return nil
			})
		},
	}
	r.flags(cmd)
	return cmd
}

// identity prints what a directory is as text.
func (a *app) identity(id *inspect.Identity) {
	say := func(what, format string, args ...any) {
		fmt.Fprintf(a.out, "%-12s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	say("line", "%s: %s", id.Line, id.Why)
	if id.Clean {
		say("stopped", "cleanly (there is no file abort)")
	} else {
		say("stopped", "not cleanly, or still running (the file abort is there)")
	}
	l := id.CommitLog
	say("commit log", "%d files of %d bytes, offsets %d to %d, %d records (%d damaged)", l.Files, id.Sizes.CommitLog, l.Start, l.End, l.Records, l.Damaged)
	say("stored", "%s to %s", clock(l.FirstStoreTime), clock(l.LastStoreTime))
	x := id.Index
	say("index", "%d files of %d slots and %d entries, %d keys, %s to %s", x.Files, id.Sizes.IndexSlots, id.Sizes.IndexEntries, x.Entries,
		clock(x.FirstStoreTime), clock(x.LastStoreTime))
	if s := id.Sizes; s.Queue > 0 {
		say("queue files", "%d bytes", s.Queue)
	}
	if s := id.Sizes; s.Extension > 0 {
		say("extensions", "files of %d bytes", s.Extension)
	}
	if s := id.Sizes; s.BatchQueue > 0 {
		say("batch queues", "files of %d bytes", s.BatchQueue)
	}
	if t := id.Transactions; t != nil {
		say("transactions", "state table: files of %d bytes, %d records, %d still prepared", id.Sizes.StateTable, t.Records, t.Prepared)
		say("", "redo log: files of %d bytes, %d units", id.Sizes.RedoLog, t.RedoUnits)
	}
	if c := id.Checkpoint; c != nil {
		say("checkpoint", "log %s, queues %s, index %s, confirmed offset %d", clock(c.Physic), clock(c.Logics), clock(c.Index), c.ConfirmOffset)
	}
	for _, r := range id.Recognised {
		say("not read", "%s: %s", r.Path, r.What)
	}
	for _, name := range id.Other {
		say("unknown", "%s", name)
	}
	t := a.table(column{"TOPIC", 32}, column{"QUEUE", -5}, column{"RECORDS", -10}, column{"UNITS", -10}, column{"MIN", -10}, column{"MAX", -10})
	for _, q := range id.Queues {
		_ = t.row(nil, q.Topic, q.QueueID, q.Records, q.Units, q.Min, q.Max) // what fails here fails again on Flush
	}
}
