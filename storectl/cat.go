package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
)

func (a *app) cat() *cobra.Command {
	var r reading
	var limits inspect.LogRange
	var filter inspect.Filter
	var queue int32
	var limit int64
	var body, transaction string
	cmd := &cobra.Command{
		Use:   "cat DIR",
		Short: "List the records of the commit log in log order",
		Long: `List the records of the commit log in log order, over all its files.

Damage does not end the list: a record whose body does not match its CRC is listed
with "damaged":"crc", anything else that cannot be believed is a finding, and the
next record is looked for behind it. Records that lie behind damage may be left over
from before an earlier cut.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("queue") {
				filter.Queue = &queue
			}
			var err error
			if filter.Transaction, err = transactionFlag(transaction); err != nil {
				return err
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				p, err := a.records(d, body)
				if err != nil {
					return err
				}
				n := int64(0)
				for rec, err := range d.Log(cmd.Context(), limits, a.finding) {
					switch {
					case err != nil:
						a.trouble(err)
						continue
					case !d.Match(&filter, &rec):
						continue
					}
					if err := p.print(&rec); err != nil {
						return err
					}
					if n++; n == limit {
						break
					}
				}
				return nil
			})
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&filter.Topic, "topic", "", "only records of this topic")
	f.Int32Var(&queue, "queue", 0, "only records of this queue id")
	f.Int64Var(&limits.From, "from", 0, "only records that start at this physical offset or behind it")
	f.Int64Var(&limits.To, "to", 0, "only records that start before this physical offset")
	f.StringVar(&filter.Key, "key", "", "only records with this key: a word of KEYS, or UNIQ_KEY")
	f.StringVar(&filter.Tag, "tag", "", "only records with this tag")
	f.Int64Var(&filter.Since, "since", 0, "only records stored at this time or later, in ms since 1970")
	f.Int64Var(&filter.Until, "until", 0, "only records stored at this time or earlier, in ms since 1970")
	f.StringVar(&transaction, "transaction", "", "only records that are this to a transaction: none, prepared, commit or rollback")
	f.Int64Var(&limit, "limit", 0, "stop after so many records; 0: no limit")
	f.StringVar(&body, "body", "", "print the body as stored: text or base64")
	return cmd
}

func transactionFlag(s string) (*message.SysFlag, error) {
	var t message.SysFlag
	switch s {
	case "":
		return nil, nil
	case "none":
	case "prepared":
		t = message.FlagPrepared
	case "commit":
		t = message.FlagCommit
	case "rollback":
		t = message.FlagRollback
	default:
		return nil, fmt.Errorf("--transaction %s: want none, prepared, commit or rollback", s)
	}
	return &t, nil
}
