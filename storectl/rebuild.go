package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
)

func (a *app) rebuild() *cobra.Command {
	var r reading
	var to string
	var o inspect.RebuildOptions
	kinds := []string{"queues", "index", "states", "redo", "checkpoint", "all"}
	var queue *int32
	cmd := &cobra.Command{
		Use:   "rebuild DIR --to NEW [queues|index|states|redo|checkpoint|all]",
		Short: "Make what is derived from the commit log anew from it, in another directory",
		Long: `Make consume queues and index, and of a store of 3.1 the state table and the redo log, anew from the
commit log of DIR, in the directory NEW, which is made and must be empty. DIR is only read. In the
state table each record has the number that its message carries. The checkpoint, not part of all, says
that everything is durable up to the last record. Queues can be made in part: of a range of the log, of a topic, of a
queue. A store of 3.1 without its folder "transaction" may not be known as one ("help tx" says when): ask for "states" and
"redo" by name then. See "diff" to compare NEW with DIR, and "swap" to put it in place.`,
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "all"
			if len(args) == 2 {
				what = args[1]
			}
			if !slices.Contains(kinds, what) {
				return fmt.Errorf("%q: want %s", what, strings.Join(kinds, ", "))
			}
			o.Sizes = r.sizes
			return r.with(args[0], func(d *inspect.Dir) error {
				all := what == "all"
				o.Derived = inspect.Derived{
					Queues: all || what == "queues", Index: all || what == "index",
					States: all && d.HasStateTable() || what == "states", Redo: all && d.HasStateTable() || what == "redo",
					Checkpoint: what == "checkpoint",
				}
				if *queue >= 0 {
					o.Queue = queue
				}
				if err := os.MkdirAll(to, 0o750); err != nil {
					return err
				}
				fsys, err := mappedfile.OpenDir(to, nil)
				if err != nil {
					return err
				}
				made, err := d.Rebuild(cmd.Context(), fsys, o, a.finding)
				if err != nil {
					return errors.Join(fmt.Errorf("rebuild into %s", to), err)
				}
				return a.table(column{"RECORDS", -10}, column{"QUEUES", -8}, column{"UNITS", -10}, column{"INDEX FILES", -11}, column{"KEYS", -10},
					column{"STATES", -8}, column{"REDO UNITS", -10}).
					row(made, made.Records, made.Queues, made.Units, made.IndexFiles, made.Keys, made.States, made.RedoUnits)
			})
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "directory to make the files in")
	cmd.Flags().StringVar(&o.Dialect, "dialect", "", "3.1, 4.9 or 5.3 (default: as the directory shows)")
	queue = partFlags(cmd, &o.RebuiltPart)
	_ = cmd.MarkFlagRequired("to")
	return cmd
}
