package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
)

// expired is what expire prints as JSON.
type expired struct {
	DryRun   bool         `json:"dryRun"`
	LogStart int64        `json:"logStart"` // physical offset where the log begins then
	Bytes    int64        `json:"bytes"`    // length of all files
	Messages int64        `json:"messages"` // queue offsets that cannot be read any more
	Files    []expiredRow `json:"files"`    // in the order in which they go
	Queues   []string     `json:"queues"`   // folders that go wholly
}

type expiredRow struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func (a *app) expire() *cobra.Command {
	var w writing
	var o rocketstore.ExpireOptions
	var queues bool
	cmd := &cobra.Command{
		Use:   "expire DIR [--older-than 72h] [--max-bytes N] [--dry-run]",
		Short: "Delete the oldest commit log files, and what hangs on them",
		Long: `Delete the oldest commit log files, up to the first that is neither older than --older-than, by its
modification time, nor too much for --max-bytes; the last one always stays. Files of consume
queues, index, state table and redo log that are only about deleted messages go with them. Without
either flag only the rest follows a log whose first files are gone already.

With --queues, queues that have no message left are removed wholly. rocketstore lets them go on at
their old offset; a real broker begins them at 0 again.

With --dry-run nothing is changed: the list is what would go, and the directory is opened for
reading.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.must(args[0]); err != nil {
				return err
			}
			w.opts.HoldDelayed, w.opts.ReadOnly, w.opts.Retention.KeepQueues = true, o.DryRun, !queues
			done, err := a.expireStore(cmd.Context(), args[0], &w.opts, o)
			if err != nil && !refusal(err) {
				return err
			}
			if err != nil {
				a.missing(err)
				return nil
			}
			return a.expired(done, o.DryRun)
		},
	}
	w.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.OlderThan, "older-than", 0, "delete files that were last changed so long ago, as in 72h")
	f.Int64Var(&o.MaxBytes, "max-bytes", 0, "delete until all commit log files together have no more bytes than this")
	f.BoolVar(&o.DryRun, "dry-run", false, "change nothing and list what would go")
	f.BoolVar(&queues, "queues", false, "remove queues that have no message left")
	return cmd
}

func (a *app) expireStore(ctx context.Context, dir string, opts *rocketstore.Options, o rocketstore.ExpireOptions) (done rocketstore.Expired, err error) {
	if o.OlderThan < 0 || o.MaxBytes < 0 {
		return done, errors.New("--older-than and --max-bytes want what is not negative")
	}
	s, err := a.open(ctx, dir, opts)
	if err != nil {
		return done, err
	}
	done, err = s.Expire(ctx, o)
	return done, errors.Join(err, s.Close(ctx))
}

func (a *app) expired(done rocketstore.Expired, dryRun bool) error {
	row := expired{dryRun, done.LogStart, done.Bytes, done.Messages, []expiredRow{}, append([]string{}, done.Queues...)}
	for _, f := range done.Files {
		row.Files = append(row.Files, expiredRow{f.Name, f.Bytes})
	}
	if a.json {
		return a.line(row)
	}
	for _, f := range row.Files {
		fmt.Fprintf(a.out, "%12d %s\n", f.Bytes, printable(f.File))
	}
	for _, q := range row.Queues {
		fmt.Fprintf(a.out, "%12s %s\n", "queue", printable(q))
	}
	verb := "deleted"
	if dryRun {
		verb = "would delete"
	}
	fmt.Fprintf(a.out, "%s %d files of %d bytes and %d queues; %d queue offsets; the log begins at %d\n",
		verb, len(row.Files), row.Bytes, len(row.Queues), row.Messages, row.LogStart)
	return nil
}
