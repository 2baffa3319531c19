package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

// indexRow is the header of an index file in JSON; behind these keys comes "slots", the slots in use as [slot, newest
// entry], which may be millions and are therefore never held together.
type indexRow struct {
	File           string `json:"file"`
	BeginTimestamp int64  `json:"beginTimestamp"`
	EndTimestamp   int64  `json:"endTimestamp"`
	BeginOffset    int64  `json:"beginOffset"`
	EndOffset      int64  `json:"endOffset"`
	SlotCount      int32  `json:"slotCount"`
	IndexCount     int32  `json:"indexCount"`
}

type entryRow struct {
	File     string `json:"file"`
	Entry    int32  `json:"entry"`
	KeyHash  int32  `json:"keyHash"`
	Offset   int64  `json:"offset"`
	TimeDiff int32  `json:"timeDiff"`
	Previous int32  `json:"previous"`
}

func (a *app) index() *cobra.Command {
	var r reading
	cmd := &cobra.Command{
		Use:   "index DIR",
		Short: "List the index files: header and slots, then entry by entry",
		Long: `List the index files, each as a row for its header and a row for each entry.

With --json the header's row has "slots", the slots in use as [slot, newest entry]; the
rows of entries have "entry", their number.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.with(args[0], func(d *inspect.Dir) error {
				for x, err := range d.IndexFiles(cmd.Context(), a.finding) {
					if err != nil {
						a.trouble(err)
						continue
					}
					if err := a.indexFile(x); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	r.flags(cmd)
	return cmd
}

func (a *app) indexFile(x *inspect.IndexFile) error {
	head := a.indexHeading
	if a.json {
		head = a.indexHeader
	}
	if err := head(x); err != nil {
		return err
	}
	t := a.table(column{"ENTRY", -10}, column{"KEYHASH", -12}, column{"OFFSET", -14}, column{"SECONDS", -8}, column{"PREVIOUS", -10})
	for e, err := range x.Entries() {
		if err != nil {
			a.trouble(err)
			return nil
		}
		row := entryRow{x.File, e.Number, e.KeyHash, e.PhysicalOffset, e.TimeDiff, e.Previous}
		if err := t.row(row, e.Number, e.KeyHash, e.PhysicalOffset, e.TimeDiff, e.Previous); err != nil {
			return err
		}
	}
	return nil
}

// indexHeader prints the header's row in JSON.
func (a *app) indexHeader(x *inspect.IndexFile) error {
	row, err := json.Marshal(indexRow{
		x.File, x.BeginTimestamp, x.EndTimestamp, x.BeginOffset, x.EndOffset, x.SlotCount, x.IndexCount,
	})
	if err != nil {
		return err
	}
	// A write that fails makes all later ones fail, and so the last.
	_, _ = a.out.Write(bytes.TrimSuffix(row, []byte("}")))
	_, _ = a.out.WriteString(`,"slots":[`)
	comma := ""
	for v, err := range x.Slots() {
		if err != nil {
			a.trouble(err)
			break
		}
		_, _ = a.out.WriteString(comma + "[" + itoa(int64(v.Slot)) + "," + itoa(int64(v.Newest)) + "]")
		comma = ","
	}
	_, err = a.out.WriteString("]}\n")
	return err
}

// indexHeading prints the header as lines of text.
func (a *app) indexHeading(x *inspect.IndexFile) error {
	used := 0
	for _, err := range x.Slots() {
		if err != nil {
			a.trouble(err)
			break
		}
		used++
	}
	_, err := fmt.Fprintf(a.out, "%s: %s to %s, offsets %d to %d, index count %d of %d, slot count %d, %d of %d slots in use\n",
		x.File, clock(x.BeginTimestamp), clock(x.EndTimestamp), x.BeginOffset, x.EndOffset, x.IndexCount, x.Shape.Entries,
		x.SlotCount, used, x.Shape.Slots)
	return err
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
