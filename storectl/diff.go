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

Fingerprints (xxhash) of all queues are compared first, then those that differ item by item. Each difference is a
finding with its file and offset; the exit status is then 1.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return first.with(args[0], func(d1 *inspect.Dir) error {
				return second.with(args[1], func(d2 *inspect.Dir) error {
					result, err := inspect.Diff(cmd.Context(), d1, d2, o, a.finding)
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
	fmt.Fprintf(a.out, "%s: %d queues and structures equal, %d different; compared: %s\n", verdict, d.Equal, len(d.Different), strings.Join(d.Compared, ", "))
	return nil
}
