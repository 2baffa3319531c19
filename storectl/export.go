package main

import (
	"errors"
	"fmt"
	"time"

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

// How export writes bodies and records.
var (
	errExportBody   = errors.New("--body: want stored, plain or redacted")
	errExportFormat = errors.New("--format: want lines or raw")
)

func (a *app) export() *cobra.Command {
	var r reading
	var s selection
	var body, format string
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the records of the commit log as JSON lines that lose nothing, for import",
		Long: `Write the records of the commit log as JSON lines that lose nothing: each holds a whole record in base64, and in
plain its topic, queue, offsets and store time. With --format raw the records stand one behind the other as in
the log. "storectl import" makes a store of either again. Damaged records are
left out; they are findings.

--body plain unpacks compressed bodies, --body redacted puts "redacted: SIZE bytes, xxh64 HASH" in the place of
each; the records' lengths and CRCs fit. Properties stay as they are.

To go on after a stop, say --cursor FILE each time, or --from the last line's physicalOffset, plus 1.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.prepare(cmd); err != nil {
				return err
			}
			if format != "lines" && format != "raw" {
				return errExportFormat
			}
			if body != "stored" && body != "plain" && body != "redacted" {
				return errExportBody
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				began := time.Now()
				err := s.each(cmd.Context(), a, d, func(rec *inspect.LogRecord) error {
					if rec.Damaged != "" {
						return nil
					}
					return a.exportRecord(rec, body, format)
				})
				a.seen(d, began)
				return err
			})
		},
	}
	r.flags(cmd)
	s.flags(cmd)
	cmd.Flags().StringVar(&body, "body", "stored", "bodies: stored, plain (unpacked) or redacted (size and hash)")
	cmd.Flags().StringVar(&format, "format", "lines", "lines (JSON) or raw (the records' bytes)")
	return cmd
}

// exportRecord writes one record.
func (a *app) exportRecord(r *inspect.LogRecord, body, format string) error {
	b := r.AppendTo(nil)
	switch body {
	case "plain":
		plain, err := inspect.PlainBody(&r.Record)
		if err != nil {
			a.missing(fmt.Errorf("record at %d, exported as stored: %w", r.PhysicalOffset, err))
			break
		}
		b = inspect.WithPlainBody(&r.Record, plain)
	case "redacted":
		b = inspect.WithPlainBody(&r.Record, inspect.RedactedBody(r.Body))
	}
	if format == "raw" {
		_, err := a.out.Write(b)
		return err
	}
	return a.line(exported{
		Topic: string(r.Topic), QueueID: r.QueueID, QueueOffset: r.QueueOffset, PhysicalOffset: r.PhysicalOffset,
		StoreTimestamp: r.StoreTimestamp, Record: b,
	})
}
