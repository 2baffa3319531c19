package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/producer"
	"github.com/rocketstore/rocketstore/trace"
)

func (a *app) trace() *cobra.Command {
	var n network
	var r reading
	var topic string
	var limit int
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "trace [DIR] MSGID",
		Short: "Show the way of a message, from the trace that its producer and consumers left at the brokers",
		Long: `Ask the brokers for the trace messages of a message, and print what they tell in the order of time: when it was sent,
how its transaction ended, and each call of a consumer's listener. MSGID is the unique id, which send prints. Only clients
that trace leave something to be found. The exit status is 1 when nothing is.

With DIR, a store directory, no broker is asked: the trace messages in it and the records of the message itself tell, in all
topics that it passed, and how its transaction ended.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return a.traceStore(cmd, &r, args[0], args[1], topic)
			}
			begin := int64(0)
			if since > 0 {
				begin = time.Now().Add(-since).UnixMilli()
			}
			t, err := findTrace(cmd.Context(), n.options(), topic, args[0], limit, begin)
			if err != nil {
				return err
			}
			return a.showTrace(t, topic)
		},
	}
	n.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&topic, "topic", trace.Topic, "the topic of trace messages")
	f.IntVar(&limit, "limit", 64, "trace messages of each broker at most")
	f.DurationVar(&since, "since", 0, "look at those of the last 24h, 30m, … only")
	return cmd
}

// findTrace asks the brokers.
func findTrace(ctx context.Context, o producer.ClientOptions, topic, id string, limit int, begin int64) (*trace.Timeline, error) {
	c, err := producer.NewClient(&o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	messages, err := c.Query(ctx, topic, id, limit, begin, 0)
	if err != nil && len(messages) == 0 {
		return nil, err
	}
	var records []trace.Context
	for _, m := range messages {
		for r, err := range trace.Decode(m.Body) {
			if err == nil { // one record that cannot be read hides no other
				records = append(records, r)
			}
		}
	}
	return trace.NewTimeline(id, records), nil
}

// showTrace prints a timeline.
func (a *app) showTrace(t *trace.Timeline, topic string) error {
	if t.Empty() {
		a.missing(fmt.Errorf("no trace of message %s in topic %s", t.ID, topic))
		return nil
	}
	if !a.json {
		return t.WriteText(a.out)
	}
	all := slices.Concat(t.Sends, t.Ends, t.Recalls)
	for _, c := range t.Consumes {
		for _, half := range []*trace.Context{c.Before, c.After} {
			if half != nil {
				all = append(all, *half)
			}
		}
	}
	for i := range all {
		if err := a.line(traceRow(&all[i])); err != nil {
			return err
		}
	}
	return nil
}

// traceRow is one record in JSON.
func traceRow(c *trace.Context) any {
	b := &c.Beans[0]
	return struct {
		Kind          string `json:"kind"`
		Time          int64  `json:"time"`
		Group         string `json:"group"`
		Topic         string `json:"topic,omitempty"`
		MsgID         string `json:"msgId"`
		OffsetMsgID   string `json:"offsetMsgId,omitempty"`
		StoreHost     string `json:"storeHost,omitempty"`
		Cost          int64  `json:"cost"`
		Success       bool   `json:"success"`
		RequestID     string `json:"requestId,omitempty"`
		RetryTimes    int    `json:"retryTimes,omitempty"`
		State         string `json:"state,omitempty"`
		FromCheck     bool   `json:"fromCheck,omitempty"`
		TransactionID string `json:"transactionId,omitempty"`
	}{
		c.Kind.String(), c.Time, c.Group, b.Topic, b.MessageID, b.OffsetID, b.StoreHost, c.Cost, c.Success, c.RequestID, b.RetryTimes, b.State,
		b.FromCheck, b.TransactionID,
	}
}
