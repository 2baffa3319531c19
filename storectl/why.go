package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

var errWhy = errors.New("say which message: TOPIC QUEUE OFFSET, or MSGID")

func (a *app) why() *cobra.Command {
	var r reading
	var q inspect.WhyRequest
	cmd := &cobra.Command{
		Use:   "why DIR TOPIC QUEUE OFFSET | why DIR MSGID",
		Short: "Follow a message to its consumers, and say where it stops",
		Long: `Follow a message from its record to its consumers: prepared or half message and how the transaction ended, delay,
record, queue unit, tags code, the settings of topic and group, the stored offset of the group, what consumers sent
back. Each step says ok, waiting or broken, and the file and offset that show it; the first that is not ok is
where the message stops. MSGID is the broker's id or the client's (UNIQ_KEY).

What subscriptions filter by stands in no file: compare the tag with what the group subscribes to. The exit status is 0
when every group that is known has the message, 1 when it stops somewhere.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 && len(args) != 4 {
				return errWhy
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				q.ID = args[1]
			} else if err := placeArgs(args[1:], &q); err != nil {
				return err
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				w, err := d.Why(cmd.Context(), q, a.finding)
				if err != nil {
					return err
				}
				if w.Break >= 0 {
					a.status = max(a.status, statusFindings)
				}
				if a.json {
					return a.line(w)
				}
				a.whyText(w)
				return nil
			})
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&q.Group, "group", "", "consumer group that waits for the message (default: all with a stored offset)")
	f.StringVar(&q.DelayLevels, "delay-levels", "", "messageDelayLevel of the broker")
	f.Int64Var(&q.MaxScan, "scan", defaultScan, "bytes of the log that are read where no index leads to the message, the last ones; 0: all")
	f.Var((*moment)(&q.Now), "now", "time by which delays are judged (default: that of this machine)")
	return cmd
}

// placeArgs reads TOPIC QUEUE OFFSET.
func placeArgs(args []string, q *inspect.WhyRequest) error {
	queue, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil || queue < 0 {
		return fmt.Errorf("QUEUE %s: want a number", args[1])
	}
	offset, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil || offset < 0 {
		return fmt.Errorf("OFFSET %s: want a number", args[2])
	}
	q.Topic, q.QueueID, q.QueueOffset = args[0], int32(queue), offset
	return nil
}

// whyText prints the steps.
func (a *app) whyText(w *inspect.Why) {
	for i, s := range w.Steps {
		mark := "  "
		if i == w.Break {
			mark = "=>"
		}
		fmt.Fprintf(a.out, "%s %-8s %-24s %s\n", mark, s.State, printable(s.What), printable(s.Text))
		if s.File != "" {
			fmt.Fprintf(a.out, "%-37s %s, offset %d\n", "", printable(s.File), s.Offset)
		}
	}
	if w.Break < 0 {
		fmt.Fprintln(a.out, "nothing holds it up")
	} else {
		fmt.Fprintf(a.out, "it stops at: %s\n", printable(w.Steps[w.Break].What))
	}
	fmt.Fprintf(a.errOut, "looked at %s\n", time.UnixMilli(w.At).UTC().Format(time.RFC3339))
}
