package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/message"
)

func (a *app) put() *cobra.Command {
	var w writing
	var m message.Message
	var body, key, tag string
	cmd := &cobra.Command{
		Use:   "put DIR --topic T --body B",
		Short: "Append one message to a store, which is made if it is not there",
		Long: `Append one message to a store. Without --body its body is empty. A directory that is not there, or empty,
becomes a store, unless the message is not taken; one with other files in it is refused. The log of a new store takes
1 GiB at once unless --segment-size says less.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			m.Body, w.opts.HoldDelayed = []byte(body), true
			for _, p := range [][2]string{{message.PropertyKeys, key}, {message.PropertyTags, tag}} {
				if p[1] == "" {
					continue
				}
				if m.Properties, err = m.Properties.Set(p[0], p[1]); err != nil {
					return err
				}
			}
			r, err := a.putOne(cmd.Context(), args[0], &w.opts, &m)
			if err != nil {
				return err
			}
			return a.table(column{"OFFSET", -12}, column{"QOFFSET", -9}, column{"SIZE", -7}, column{"ID", 32}).row(struct {
				PhysicalOffset int64  `json:"physicalOffset"`
				QueueOffset    int64  `json:"queueOffset"`
				StoreSize      int    `json:"storeSize"`
				MsgID          string `json:"msgId"`
			}{r.PhysicalOffset, r.QueueOffset, r.Size, r.MessageID()}, r.PhysicalOffset, r.QueueOffset, r.Size, r.MessageID())
		},
	}
	w.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&m.Topic, "topic", "", "topic of the message")
	f.Int32Var(&m.QueueID, "queue", 0, "queue id")
	f.StringVar(&body, "body", "", "body of the message")
	f.StringVar(&key, "key", "", "its keys, parted by spaces")
	f.StringVar(&tag, "tag", "", "its tag")
	_ = cmd.MarkFlagRequired("topic")
	return cmd
}

// putOne puts a message and leaves nothing behind when it could not, in a directory that held nothing before.
func (a *app) putOne(ctx context.Context, dir string, o *rocketstore.Options, m *message.Message) (r rocketstore.PutResult, err error) {
	fresh, err := freshAt(dir)
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil && !errors.Is(err, rocketstore.ErrLocked) { // else another has begun there meanwhile
			err = errors.Join(err, fresh.undo())
		}
	}()
	s, err := a.open(ctx, dir, o)
	if err != nil {
		return r, err
	}
	r, err = s.Put(ctx, m)
	return r, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
}
