package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

func (a *app) diff() *cobra.Command {
	var first, second reading
	var o inspect.DiffOptions
	cmd := &cobra.Command{
		Use:   "diff DIR1 DIR2",
		Short: "Compare two stores by content: a replica, a backup, what rebuild made",
		Long: `Compare two stores by content, each structure that both have: the messages by queue and queue offset, the units of
the queues, the entries of the index, state table and redo log of 3.1. Where a message lies in the log, when it was
stored and by which host do not count, so that a store may be compared with one that "import" made; in a replica
or what "rebuild" made the places must be the same.

The files under config and the checkpoint are compared value by value, if both stores have them; the progress of
consumers and the checkpoint, which move all the time, and files that only one store has do not count as differences.

Fingerprints (xxhash) of all queues are compared first, then those that differ item by item. Each difference is a
finding with its file and offset; the exit status is then 1.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return first.with(args[0], func(d1 *inspect.Dir) error {
				return second.with(args[1], func(d2 *inspect.Dir) error {
					result, err := inspect.Diff(cmd.Context(), d1, d2, o, a.difference)
					if err != nil {
						return err
					}
					if result.Findings > 0 || len(result.Different) > 0 {
						a.status = max(a.status, statusFindings)
					}
					if a.json {
						return a.line(result)
					}
					return a.diffText(result)
				})
			})
		},
	}
	cmd.Flags().IntVar(&o.Max, "max", 100, "differences of one sort that are printed; -1: all")
	return cmd
}

// difference prints a finding; one of severity info is no difference that counts.
func (a *app) difference(f inspect.Finding) {
	if f.Severity != inspect.Info {
		a.found(f)
	}
	a.show(f)
}

func (a *app) diffText(d *inspect.DiffResult) error {
	if len(d.Different) > 0 {
		t := a.table(column{"DIFFERENT", 36}, column{"COUNT", -10}, column{"FIRST", -10}, column{"END", -10}, column{"FINGERPRINT", 16})
		for _, pair := range d.Different {
			for i, f := range pair {
				name := f.Queue
				if i == 1 {
					name = "  in the second"
				}
				if err := t.row(nil, name, f.Count, f.First, f.End, fmt.Sprintf("%016x", f.Sum)); err != nil {
					return err
				}
			}
		}
	}
	verdict := "the same content"
	if d.Findings > 0 || len(d.Different) > 0 {
		verdict = fmt.Sprintf("%d differences", d.Findings)
	}
	for _, f := range d.Files {
		what := countOf(f)
		fmt.Fprintf(a.out, "%s: %s\n", printable(f.File), what)
	}
	fmt.Fprintf(a.out, "%s: %d queues and structures equal, %d different; compared: %s\n", verdict, d.Equal, len(d.Different), strings.Join(d.Compared, ", "))
	return nil
}

// countOf says how a file differs.
func countOf(f inspect.FileDiff) string {
	switch {
	case f.Only != "":
		return "only in the " + f.Only
	case f.Count == 0:
		return "other bytes"
	case f.Count == 1:
		return "1 value differs"
	}
	return fmt.Sprintf("%d values differ", f.Count)
}
