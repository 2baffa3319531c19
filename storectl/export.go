package main

import (
	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

// exported is a record on its way from one store to another.
type exported struct {
	Topic          string `json:"topic"`
	QueueID        int32  `json:"queueId"`
	QueueOffset    int64  `json:"queueOffset"`
	PhysicalOffset int64  `json:"physicalOffset"`
	StoreTimestamp int64  `json:"storeTimestamp"` // ms
	Record         []byte `json:"record"`         // as in the log; base64 in JSON
}

func (a *app) export() *cobra.Command {
	var r reading
	var limits inspect.LogRange
	var filter inspect.Filter
	var queue int32
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the records of the commit log as JSON lines that lose nothing, for import",
		Long: `Write the records of the commit log as JSON lines that lose nothing: each holds a whole record in base64, and in
plain its topic, queue, offsets and store time. "storectl import" makes a store of them again. Damaged records are
left out; they are findings. To go on after a stop, say --from the last line's physicalOffset, plus 1.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("queue") {
				filter.Queue = &queue
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				for rec, err := range d.Log(cmd.Context(), limits, a.finding) {
					switch {
					case err != nil:
						a.trouble(err)
						continue
					case rec.Damaged != "" || !d.Match(&filter, &rec):
						continue
					}
					err := a.line(exported{
						Topic: string(rec.Topic), QueueID: rec.QueueID, QueueOffset: rec.QueueOffset, PhysicalOffset: rec.PhysicalOffset,
						StoreTimestamp: rec.StoreTimestamp, Record: rec.AppendTo(nil),
					})
					if err != nil {
						return err
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
	return cmd
}
