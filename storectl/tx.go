package main

import (
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

// txRow is a transaction in JSON.
type txRow struct {
	Index     int64  `json:"index"`
	ClOffset  int64  `json:"clOffset"`
	Size      int32  `json:"size"`
	Timestamp int64  `json:"timestamp"` // seconds
	GroupHash int32  `json:"groupHash"`
	State     int32  `json:"state"`
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	MsgID     string `json:"msgId"`
	Age       int64  `json:"age"` // seconds
	Filler    bool   `json:"filler,omitempty"`
	Half      bool   `json:"half,omitempty"` // a half message of 4.3 and later, not a record of the state table
}

// redoRow is a unit of the redo log in JSON.
type redoRow struct {
	Index    int64  `json:"index"`
	File     string `json:"file"`
	Offset   int64  `json:"offset"`
	Size     int32  `json:"size"`
	TagsCode int64  `json:"tagsCode"`
}

func (a *app) tx() *cobra.Command {
	var r reading
	var open, redo bool
	cmd := &cobra.Command{
		Use:   "tx DIR",
		Short: "List the transactions: state table and redo log of 3.1, open half messages of 4.x and 5.x",
		Long: `List the records of the transaction state table of 3.1, with what their prepared messages say:
group, topic and message id, and the age in seconds. The state is 4 prepared (open), 8 committed,
12 rolled back. Records that 3.1 gave another number than their message carries, open ones without
a message and those that do not fit theirs are findings. Where there is no state table, what the redo log has as
open is a finding each; without a redo log, what the commit log has.

A store of 3.1 that lost its folder "transaction" is known by config/rocketstore.json, by the index or by the first
records of the log, or by a prepared message among the first 1000 records of the log's first or last file. One whose prepared
messages all lie elsewhere is taken for a store of 4.x here, by diff and by rebuild of all; "rebuild DIR states" and
"rebuild DIR redo" make them all the same, and check reads the whole log and reports what is missing.

Of a store with half messages (4.3 and later) the open ones are listed, by their queue offset:
what no op message ends from the stored progress on, copies of one message once. A store of 3.1 that 4.3 or
later went on with has both: the state table comes first, then the half messages, with the state "half".

With --redo list the units of the redo log instead; one that is left over from before a cut of the
log, or is not its record's, is a finding.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.with(args[0], func(d *inspect.Dir) error {
				began := time.Now()
				list := func() error { return a.transactions(cmd, d, open) }
				if redo {
					list = func() error { return a.redoUnits(cmd, d) }
				}
				err := list()
				a.seen(d, began)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "only open transactions")
	cmd.Flags().BoolVar(&redo, "redo", false, "list the redo log")
	cmd.MarkFlagsMutuallyExclusive("open", "redo")
	cmd.AddCommand(a.txExport())
	return cmd
}

func (a *app) transactions(cmd *cobra.Command, d *inspect.Dir, onlyOpen bool) error {
	now := time.Now()
	both := d.HasStateTable() && d.HasHalfTopic()
	t := a.table(column{"INDEX", -8}, column{"OFFSET", -14}, column{"SIZE", -7}, column{"STORED", 24}, column{"STATE", 11}, column{"GROUP", 20},
		column{"TOPIC", 20}, column{"MSGID", 32}, column{"AGE", 0})
	row := func(tx inspect.Transaction, half bool) error {
		if onlyOpen && !tx.Open() {
			return nil
		}
		age := now.Sub(time.UnixMilli(tx.StoreTimestamp)).Truncate(time.Second)
		row := txRow{
			tx.Number, tx.CommitOffset, tx.Size, tx.Seconds(), tx.GroupHash, int32(tx.State), tx.Group, tx.Topic, tx.MsgID, int64(age / time.Second), tx.Filler, half,
		}
		state := tx.State.String()
		switch {
		case tx.Filler:
			state = "filler"
		case half && both:
			state = "half"
		}
		return t.row(row, tx.Number, tx.CommitOffset, tx.Size, clock(tx.StoreTimestamp), state, tx.Group, tx.Topic, tx.MsgID, age)
	}
	if d.HasStateTable() {
		if err := a.eachTransaction(d.Transactions(cmd.Context(), a.finding), false, row); err != nil {
			return err
		}
	}
	if !d.HasHalfTopic() {
		return nil
	}
	return a.eachTransaction(d.HalfTransactions(cmd.Context(), a.finding), true, row)
}

// eachTransaction prints a list of transactions.
func (a *app) eachTransaction(list iter.Seq2[inspect.Transaction, error], half bool, row func(inspect.Transaction, bool) error) error {
	for tx, err := range list {
		if err != nil {
			a.trouble(err)
			continue
		}
		if err := row(tx, half); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) redoUnits(cmd *cobra.Command, d *inspect.Dir) error {
	t := a.table(column{"INDEX", -9}, column{"OFFSET", -14}, column{"SIZE", -7}, column{"TAGSCODE", -14}, column{"", 0})
	for u, err := range d.RedoUnits(cmd.Context(), a.finding) {
		if err != nil {
			a.trouble(err)
			continue
		}
		what := "prepared"
		if at, ends := u.Resolves(); ends {
			what = fmt.Sprintf("ends %d", at)
		}
		if err := t.row(redoRow{u.Index, u.File, u.PhysicalOffset, u.Size, u.TagsCode}, u.Index, u.PhysicalOffset, u.Size, u.TagsCode, what); err != nil {
			return err
		}
	}
	return nil
}
