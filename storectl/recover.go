package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// outcome is what recover prints as JSON.
type outcome struct {
	Open                string               `json:"open"` // "ok" or "refuse"
	Unclean             bool                 `json:"unclean"`
	Start               int64                `json:"start"`  // where the check of the log began
	Reason              string               `json:"reason"` // why there
	LogStart            int64                `json:"logStart"`
	LogEnd              int64                `json:"logEnd"`
	TruncatedAt         *int64               `json:"truncatedAt"` // null: nothing was cut
	CutBytes            int64                `json:"cutBytes"`
	Believed            int64                `json:"believed"` // bytes at the log's start that were not looked at
	Replayed            int64                `json:"replayed"` // records
	Queues              map[string]*queueRow `json:"queues"`
	Lost                []lostRow            `json:"lost,omitempty"`
	Warnings            []warningRow         `json:"warnings"`
	Messages            *int64               `json:"messages,omitempty"`            // with --count
	OpenTransactions    []int64              `json:"openTransactions"`              // physical offsets
	NextStateTableIndex *int64               `json:"nextStateTableIndex,omitempty"` // 3.1
	RedoLogUnits        *int64               `json:"redoLogUnits,omitempty"`        // 3.1
	Error               *warningRow          `json:"error"`
}

type queueRow struct {
	Min      int64  `json:"min"`
	Max      int64  `json:"max"`
	Readable *int64 `json:"readable,omitempty"` // with --count
}

type lostRow struct {
	Topic        string `json:"topic"`
	QueueID      int32  `json:"queueId"`
	FromOffset   int64  `json:"fromOffset"`
	ToOffset     int64  `json:"toOffset"`
	NextReadable int64  `json:"nextReadable"`
}

type warningRow struct {
	Kind       string `json:"kind"`
	File       string `json:"file"`
	Offset     int64  `json:"offset"`
	FromOffset int64  `json:"fromOffset,omitempty"`
	ToOffset   int64  `json:"toOffset,omitempty"`
	Text       string `json:"text"`
}

func (a *app) recover() *cobra.Command {
	var w writing
	var count bool
	cmd := &cobra.Command{
		Use:   "recover DIR",
		Short: "Open a directory for writing, so that it is recovered, and close it cleanly",
		Long: `Open a directory for writing, so that what a crash left is put in order, close it cleanly and
say what was found and done. When the log is damaged in the middle nothing is changed: the
directory is not opened, the error says what is there, and the exit status is 1. It is 0 when
the directory was opened, whatever was cut or made again; the warnings say what.

With --on-damage cut-and-keep the log is ended before the damage, with skip the good records behind it
stay; what is taken away is kept in lost+found. Look with plan and the same flag first.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.must(args[0]); err != nil {
				return err
			}
			w.opts.HoldDelayed = true
			out, err := a.recoverStore(cmd.Context(), args[0], &w.opts, count)
			if err != nil {
				return err
			}
			a.inFlags(out.Warnings, out.Error)
			if out.Error != nil {
				a.status = max(a.status, statusFindings)
			}
			if a.json {
				return a.line(out)
			}
			a.outcome(out)
			return nil
		},
	}
	w.flags(cmd)
	w.choiceFlags(cmd)
	cmd.Flags().BoolVar(&count, "count", false, "count the messages that can be read, in a pass over the log")
	return cmd
}

// recoverStore opens and closes the store. A refusal is part of the outcome; an error means that it could not be tried.
func (a *app) recoverStore(ctx context.Context, dir string, o *rocketstore.Options, count bool) (*outcome, error) {
	out := &outcome{Open: "ok", Queues: map[string]*queueRow{}, Warnings: []warningRow{}, OpenTransactions: []int64{}}
	s, err := a.open(ctx, dir, o)
	if err != nil && !refusal(err) {
		return nil, err
	}
	if err != nil {
		out.Open, out.Error = "refuse", refusalRow(err)
		return out, nil
	}
	out.report(s.Report())
	err = out.content(ctx, s, count)
	return out, errors.Join(err, s.Close(ctx))
}

func refusalRow(err error) *warningRow {
	if r, ok := errors.AsType[*recovery.RefusedError](err); ok {
		return &warningRow{Kind: r.Kind, File: r.File, Offset: r.Offset, Text: r.Error()}
	}
	row := &warningRow{Kind: "contradiction", Text: err.Error()}
	if c, ok := errors.AsType[*mappedfile.CorruptError](err); ok {
		row.File, row.Offset = c.File, c.Offset
	}
	return row
}

func (out *outcome) report(r *recovery.Report) {
	out.Unclean, out.Start, out.Reason = r.Unclean, r.Start, r.Reason
	out.LogStart, out.LogEnd, out.CutBytes, out.Replayed = r.LogStart, r.LogEnd, r.CutBytes, r.Dispatched
	out.Believed = unseen(r)
	if r.TruncatedAt >= 0 {
		out.TruncatedAt = &r.TruncatedAt
	}
	for _, w := range r.Warnings {
		out.Warnings = append(out.Warnings, warningRow{w.Kind, w.File, w.Offset, w.From, w.To, w.Text})
	}
	for _, l := range r.Lost {
		out.Lost = append(out.Lost, lostRow{l.Topic, l.QueueID, l.From, l.To, l.NextReadable})
	}
}

// content fills in the queues and, with count, what can be read.
func (out *outcome) content(ctx context.Context, s *rocketstore.Store, count bool) error {
	for q, err := range s.Queues(ctx) {
		if err != nil {
			return err
		}
		row := &queueRow{Min: q.Min, Max: q.Max}
		out.Queues[fmt.Sprintf("%s/%d", q.Topic, q.QueueID)] = row
		if !count {
			continue
		}
		row.Readable = new(int64)
		for _, err := range s.Messages(q.Topic, q.QueueID, q.Min) {
			if err == nil {
				*row.Readable++
			}
		}
	}
	for t, err := range s.OpenTransactions(ctx) {
		if err != nil {
			return err
		}
		out.OpenTransactions = append(out.OpenTransactions, t.PhysicalOffset)
	}
	if info, ok := s.StateTableInfo(); ok {
		out.NextStateTableIndex, out.RedoLogUnits = &info.Next, &info.RedoUnits
	}
	if !count {
		return nil
	}
	out.Messages = new(int64)
	for _, err := range s.Records(out.LogStart) {
		if err != nil {
			return err
		}
		*out.Messages++
	}
	return nil
}

// outcome prints what recovery did as text.
func (a *app) outcome(out *outcome) {
	say := func(what, format string, args ...any) {
		fmt.Fprintf(a.out, "%-12s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	if out.Error != nil {
		say("refused", "%s", out.Error.Text)
		return
	}
	stop := "clean"
	if out.Unclean {
		stop = "unclean"
	}
	say("last stop", "%s", stop)
	say("checked", "from %d: %s", out.Start, out.Reason)
	say("commit log", "%d to %d, %d records replayed", out.LogStart, out.LogEnd, out.Replayed)
	if out.Believed > 0 {
		say("believed", "%s", believed(out.LogStart, out.Believed, out.Unclean))
	}
	if out.TruncatedAt != nil {
		say("cut", "at %d, %d bytes", *out.TruncatedAt, out.CutBytes)
	}
	if out.Messages != nil {
		say("messages", "%d", *out.Messages)
	}
	say("open", "%d transactions", len(out.OpenTransactions))
	for _, l := range out.Lost {
		say("lost", "%s/%d: %s, the next one is %d", l.Topic, l.QueueID, offsetsOf(l.FromOffset, l.ToOffset), l.NextReadable)
	}
	for _, w := range out.Warnings {
		say("warning", "%s: %s: offset %d: %s", w.Kind, w.File, w.Offset, w.Text)
	}
	for _, name := range slices.Sorted(maps.Keys(out.Queues)) {
		q := out.Queues[name]
		readable := ""
		if q.Readable != nil {
			readable = fmt.Sprintf(", %d readable", *q.Readable)
		}
		say("queue", "%s: %d to %d%s", name, q.Min, q.Max, readable)
	}
}
