package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/message"
)

// txExported is an open transaction on its way into another store.
type txExported struct {
	PhysicalOffset int64  `json:"physicalOffset"` // in the source
	Group          string `json:"group"`
	Topic          string `json:"topic"`
	QueueID        int32  `json:"queueId"`
	MsgID          string `json:"msgId"`
	Result         string `json:"result"`
	HalfOffset     int64  `json:"halfOffset"`      // physical, of the half message; -1: there is none
	HalfQueue      int64  `json:"halfQueueOffset"` // its queue offset
}

// The results.
const (
	txWould   = "would be exported"
	txDone    = "exported"
	txThere   = "there already"
	txNoGroup = "left out: no producer group"
)

func (a *app) txExport() *cobra.Command {
	var w writing
	var half, dryRun bool
	cmd := &cobra.Command{
		Use:   "export --half DIR OUT [--dry-run]",
		Short: "Store the open transactions of a 3.1 directory as half messages of a 4.3 or later one",
		Long: `Store the open transactions of DIR, a directory of 3.1, as half messages in OUT, a store of 4.3 or
later that is made if it is not there. Open is what the log says: each prepared message that no
later record commits or rolls back. DIR is only read and stays as it is: do not let a broker serve
both afterwards, or the producers are asked twice.

A message without UNIQ_KEY gets its old message id for one, so that a second run finds what is
there already. One without a producer group is left out, since a real broker stops checking at it;
the exit status is 1 then. With --dry-run nothing is written.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !half {
				return errors.New("say --half: half messages are what can be made")
			}
			rows, err := a.moveTransactions(cmd.Context(), args[0], args[1], &w, dryRun)
			t := a.table(column{"OFFSET", -14}, column{"GROUP", 20}, column{"TOPIC", 20}, column{"QUEUE", -5}, column{"MSGID", 32},
				column{"HALF", -8}, column{"HALF OFFSET", -14}, column{"RESULT", 0})
			for _, r := range rows {
				if r.Result == txNoGroup {
					a.status = max(a.status, statusFindings)
				}
				if err := t.row(r, r.PhysicalOffset, r.Group, r.Topic, r.QueueID, r.MsgID, r.HalfQueue, r.HalfOffset, r.Result); err != nil {
					return err
				}
			}
			return err
		},
	}
	w.flags(cmd)
	cmd.Flags().BoolVar(&half, "half", false, "make half messages")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "write nothing and list what would be exported")
	return cmd
}

// moveTransactions reads the open transactions of one store and puts them into another.
func (a *app) moveTransactions(ctx context.Context, from, to string, w *writing, dryRun bool) (rows []txExported, err error) {
	if err := w.must(from); err != nil {
		return nil, err
	}
	if d, _, err := rocketstore.Plan(ctx, from, nil); err != nil {
		return nil, err
	} else if d.Refused != nil {
		a.missing(fmt.Errorf("what lies behind the damage is left out: %w", d.Refused))
	}
	source, err := rocketstore.OpenContext(ctx, from, &rocketstore.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close(ctx)) }()
	if _, ok := source.StateTableInfo(); !ok {
		return nil, fmt.Errorf("%s: no store of 3.1: it has no transaction state table", from)
	}
	open, err := openInLog(ctx, source)
	if err != nil {
		return nil, err
	}
	target, err := openTarget(ctx, to, w, dryRun)
	if err != nil {
		return nil, err
	}
	if target != nil {
		defer func() { err = errors.Join(err, target.Close(ctx)) }()
	}
	for _, offset := range open {
		row, err := moveTransaction(ctx, source, target, offset, dryRun)
		if err != nil {
			return rows, fmt.Errorf("transaction at %d: %w", offset, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// openInLog gives the physical offsets of the prepared messages that nothing ends, in log order.
func openInLog(ctx context.Context, s *rocketstore.Store) ([]int64, error) {
	open := make(map[int64]struct{})
	start, _ := s.Bounds()
	n := 0
	for r, err := range s.Records(start) {
		if err != nil {
			return nil, err
		}
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch r.SysFlag.Transaction() {
		case message.FlagPrepared:
			open[r.PhysicalOffset] = struct{}{}
		case message.FlagCommit, message.FlagRollback:
			delete(open, r.PreparedTransactionOffset)
		}
	}
	return slices.Sorted(maps.Keys(open)), nil
}

// openTarget opens the store that the half messages go to; for a dry run only to look, and nil when it is not there.
func openTarget(ctx context.Context, dir string, w *writing, dryRun bool) (*rocketstore.Store, error) {
	opts := w.opts
	opts.ReadOnly, opts.HoldDelayed = dryRun, true
	if _, err := os.Stat(dir); dryRun && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	// Looked at first: opening for writing would recover a store that is refused, and it may be the source.
	if look, err := rocketstore.OpenContext(ctx, dir, &rocketstore.Options{ReadOnly: true}); err == nil {
		if err := errors.Join(refuseStateTable(dir, look), look.Close(ctx)); err != nil {
			return nil, err
		}
	}
	s, err := rocketstore.OpenContext(ctx, dir, &opts)
	if err != nil {
		return nil, err
	}
	if err := refuseStateTable(dir, s); err != nil { // a new one, asked for so
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func refuseStateTable(dir string, s *rocketstore.Store) error {
	if _, ok := s.StateTableInfo(); ok {
		return fmt.Errorf("%s: its transactions are kept in a state table, not as half messages", dir)
	}
	return nil
}

// moveTransaction puts one transaction into the target, unless it is there.
func moveTransaction(ctx context.Context, source, target *rocketstore.Store, offset int64, dryRun bool) (txExported, error) {
	m, err := source.MessageAt(offset)
	if err != nil {
		return txExported{}, err
	}
	group, _ := m.Properties.Get(message.PropertyProducerGroup)
	row := txExported{offset, group, m.Topic, m.QueueID, message.OffsetID(m.StoreHost, offset), txWould, -1, -1}
	if group == "" {
		row.Result = txNoGroup
		return row, nil
	}
	unique, ok := m.Properties.Get(message.PropertyUniqueKey)
	if !ok {
		unique = row.MsgID
	}
	for _, p := range [][2]string{{message.PropertyUniqueKey, unique}, {message.PropertyTransactionPrepared, "true"}} {
		if m.Properties, err = m.Properties.Set(p[0], p[1]); err != nil {
			return row, err
		}
	}
	if target != nil {
		for r, err := range target.Query(ctx, rocketstore.QueryRequest{Topic: rocketstore.HalfTopicName, Key: unique}) {
			if err != nil {
				return row, err
			}
			if string(message.Lookup(r.Properties, message.PropertyProducerGroup)) == group {
				row.Result, row.HalfOffset, row.HalfQueue = txThere, r.PhysicalOffset, r.QueueOffset
				return row, nil
			}
		}
	}
	if dryRun {
		return row, nil
	}
	res, err := target.Put(ctx, m)
	if err == nil {
		row.Result, row.HalfOffset, row.HalfQueue = txDone, res.PhysicalOffset, res.QueueOffset
	}
	return row, err
}
