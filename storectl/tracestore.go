package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

// traceStore prints what a store directory knows of a message.
func (a *app) traceStore(cmd *cobra.Command, r *reading, dir, id, topic string) error {
	return r.with(dir, func(d *inspect.Dir) error {
		defer a.seen(d, time.Now())
		events, err := d.Trace(cmd.Context(), id, inspect.TraceOptions{Topic: topic, MaxScan: defaultScan}, a.finding)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			a.missing(fmt.Errorf("the store knows nothing of message %s", id))
			return nil
		}
		t := a.table(column{"TIME", 24}, column{"EVENT", 20}, column{"WHAT", 0})
		for _, e := range events {
			if err := t.row(e, clock(e.Time), e.What, fmt.Sprintf("%s (%s, offset %d)", e.Text, e.File, e.Offset)); err != nil {
				return err
			}
		}
		return nil
	})
}
