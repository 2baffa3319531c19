package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
)

func (a *app) rebuild() *cobra.Command {
	var r reading
	var to string
	var o inspect.RebuildOptions
	cmd := &cobra.Command{
		Use:   "rebuild DIR --to NEW [queues|index|all]",
		Short: "Make consume queues and index anew from the commit log, in another directory",
		Long: `Make consume queues and index anew from the commit log of DIR, in the directory NEW, which is
made and must be empty. DIR is only read.`,
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: []string{"queues", "index", "all"},
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "all"
			if len(args) == 2 {
				what = args[1]
			}
			if !slices.Contains([]string{"queues", "index", "all"}, what) {
				return fmt.Errorf("%q: want queues, index or all", what)
			}
			o.Queues, o.Index, o.Sizes = what != "index", what != "queues", r.sizes
			return r.with(args[0], func(d *inspect.Dir) error {
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
				return a.table(column{"RECORDS", -10}, column{"QUEUES", -8}, column{"UNITS", -10}, column{"INDEX FILES", -11}, column{"KEYS", -10}).
					row(made, made.Records, made.Queues, made.Units, made.IndexFiles, made.Keys)
			})
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "directory to make the files in")
	cmd.Flags().StringVar(&o.Dialect, "dialect", "", "3.1, 4.9 or 5.3 (default: as the directory shows)")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}
