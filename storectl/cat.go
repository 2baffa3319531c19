package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

func (a *app) cat() *cobra.Command {
	var r reading
	var s selection
	var body string
	cmd := &cobra.Command{
		Use:   "cat DIR",
		Short: "List the records of the commit log in log order",
		Long: `List the records of the commit log in log order, over all its files.

Damage does not end the list: a record whose body does not match its CRC is listed
with "damaged":"crc", anything else that cannot be believed is a finding, and the
next record is looked for behind it. Records that lie behind damage may be left over
from before an earlier cut.

With --cursor FILE a list that was stopped, by --limit or Ctrl-C, goes on where it
ended; on a store that a broker works on the next call gives what came meanwhile.
Of such a store a line on the standard error says when it was looked at.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.prepare(cmd); err != nil {
				return err
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				p, err := a.records(d, body)
				if err != nil {
					return err
				}
				began := time.Now()
				err = s.each(cmd.Context(), a, d, p.print)
				a.seen(d, began)
				return err
			})
		},
	}
	r.flags(cmd)
	s.flags(cmd)
	bodyFlag(cmd, &body)
	return cmd
}
