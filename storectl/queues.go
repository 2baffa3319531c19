package main

import (
	"encoding/hex"
	"math"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/inspect"
)

// unitRow is a unit of a consume queue in JSON, batchRow one of a batch queue, extRow one of an extension.
type unitRow struct {
	Topic    string `json:"topic"`
	QueueID  int32  `json:"queueId"`
	Index    int64  `json:"index"`
	Offset   int64  `json:"offset"`
	Size     int32  `json:"size"`
	TagsCode int64  `json:"tagsCode"`
}

type batchRow struct {
	unitRow
	StoreTime  int64 `json:"storeTime"`
	BaseOffset int64 `json:"baseOffset"`
	BatchSize  int16 `json:"batchSize"`
}

type extRow struct {
	Topic     string `json:"topic"`
	QueueID   int32  `json:"queueId"`
	ExtOffset int64  `json:"extOffset"`
	End       bool   `json:"end,omitempty"` // the mark that ends a file; there is nothing more then
	Size      int16  `json:"size"`
	TagsCode  int64  `json:"tagsCode"`
	StoreTime int64  `json:"storeTime"`
	Bitmap    string `json:"bitmap"` // hex
}

func (a *app) queues() *cobra.Command {
	var r reading
	var filter inspect.QueueFilter
	var queue int32
	var ext bool
	cmd := &cobra.Command{
		Use:   "queues DIR",
		Short: "List the units of the consume queues, raw as on disk",
		Long: `List the units of the consume queues and of the batch queues, by topic and queue id,
raw as on disk: fillers (size 2147483647) and units behind the end of the log as well.
A unit that is zero is none; zeros with units behind them are a finding.

With --ext list the units of consumequeue_ext instead; a tags code of a queue's unit of
-9223372036854775808 + extOffset leads there.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("queue") {
				filter.Queue = &queue
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				if ext {
					return a.extensions(cmd, d, filter)
				}
				return a.units(cmd, d, filter)
			})
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&filter.Topic, "topic", "", "only queues of this topic")
	f.Int32Var(&queue, "queue", 0, "only queues with this id")
	f.BoolVar(&ext, "ext", false, "list the extensions of the queues")
	return cmd
}

func (a *app) units(cmd *cobra.Command, d *inspect.Dir, filter inspect.QueueFilter) error {
	t := a.table(column{"TOPIC", 28}, column{"QUEUE", -5}, column{"INDEX", -9}, column{"OFFSET", -14}, column{"SIZE", -10}, column{"TAGSCODE", -20}, column{"", 0})
	for u, err := range d.Queues(cmd.Context(), filter, a.finding) {
		if err != nil {
			a.trouble(err)
			continue
		}
		plain := unitRow{u.Topic, u.QueueID, u.Index, u.PhysicalOffset, u.Size, u.TagsCode}
		var row any = plain
		if b := u.Batch; b != nil {
			row = batchRow{plain, b.StoreTime, b.BaseOffset, b.BatchSize}
		}
		if err := t.row(row, u.Topic, u.QueueID, u.Index, u.PhysicalOffset, u.Size, u.TagsCode, remark(&u)); err != nil {
			return err
		}
	}
	return nil
}

// remark says in the table what is special about a unit.
func remark(u *inspect.QueueUnit) string {
	switch {
	case u.Batch != nil:
		return "base " + itoa(u.Batch.BaseOffset) + ", " + itoa(int64(u.Batch.BatchSize)) + " messages, stored " + clock(u.Batch.StoreTime)
	case u.IsFiller():
		return "filler"
	case consumequeue.IsExtAddress(u.TagsCode):
		return "ext " + itoa(consumequeue.ExtOffset(u.TagsCode))
	case u.TagsCode > math.MaxInt32:
		return "due " + clock(u.TagsCode)
	}
	return ""
}

func (a *app) extensions(cmd *cobra.Command, d *inspect.Dir, filter inspect.QueueFilter) error {
	t := a.table(column{"TOPIC", 28}, column{"QUEUE", -5}, column{"EXTOFFSET", -10}, column{"SIZE", -5}, column{"TAGSCODE", -12}, column{"STORED", 24}, column{"BITMAP", 0})
	for u, err := range d.Extensions(cmd.Context(), filter, a.finding) {
		if err != nil {
			a.trouble(err)
			continue
		}
		row := extRow{u.Topic, u.QueueID, u.Offset, u.End, u.Size, u.TagsCode, u.StoreTime, hex.EncodeToString(u.Bitmap)}
		bitmap := row.Bitmap
		if u.End {
			bitmap = "end of file"
		}
		if err := t.row(row, row.Topic, row.QueueID, row.ExtOffset, row.Size, row.TagsCode, clock(row.StoreTime), bitmap); err != nil {
			return err
		}
	}
	return nil
}
