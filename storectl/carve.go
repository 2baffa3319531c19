package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

var errNothingCarved = errors.New("no record found")

// carvedRow is a carved record in JSON.
type carvedRow struct {
	Image       string `json:"image"`       // the file it was found in
	ImageOffset int64  `json:"imageOffset"` // bytes from that file's start
	recordRow
}

func (a *app) carve() *cobra.Command {
	var o inspect.CarveOptions
	var topic, body, export string
	cmd := &cobra.Command{
		Use:   "carve FILE…",
		Short: "Find messages in damaged files, disk images, or what is left of deleted files",
		Long: `Find messages in any files: damaged segments, an image of a disk or the disk itself, what is left of deleted
files. A record is taken wherever it lies if it has the magic, its lengths add up and its body matches its CRC;
OFFSET is where in the log it says that it lay.

With --export lines or raw the records are written as by "storectl export", for import. With --damaged those
whose body does not match its CRC are listed as well; they are never exported. Nothing is written to FILE.

The exit status is 1 when nothing was found, or records were only found damaged.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if export != "" && export != "lines" && export != "raw" {
				return errExportFormat
			}
			p, err := a.records(nil, body)
			if err != nil {
				return err
			}
			p.columns = append([]column{{"AT", -12}}, p.columns...)
			c := &carving{app: a, table: p, o: o, topic: topic, export: export}
			for _, name := range args {
				if err := c.file(cmd, name); err != nil {
					if cmd.Context().Err() != nil {
						return errors.Join(c.end(), err)
					}
					a.trouble(err)
				}
			}
			return c.end()
		},
	}
	f := cmd.Flags()
	f.StringVar(&topic, "topic", "", "only records of this topic")
	f.StringVar(&export, "export", "", "write the records for import: lines or raw")
	f.BoolVar(&o.Damaged, "damaged", false, "list records whose body does not match its CRC as well")
	f.Int64Var(&o.MaxRecord, "max-record", 16<<20, "largest record in bytes")
	bodyFlag(cmd, &body)
	return cmd
}

// carving is one run over several files.
type carving struct {
	app    *app
	table  *records
	o      inspect.CarveOptions
	topic  string
	export string
	total  inspect.CarveStats
}

// file carves one file.
func (c *carving) file(cmd *cobra.Command, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read

	if info, err := f.Stat(); err == nil && info.IsDir() { // file systems differ in what a seek says of one
		return fmt.Errorf("%s is a directory", name)
	}
	// The length of a disk is not in what stat says.
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	bar := c.app.progress()
	stats := &inspect.CarveStats{}
	o := c.o
	o.Stats, o.Progress = stats, func(done int64) { bar.update(done, size) }
	for r, err := range inspect.Carve(cmd.Context(), name, f, size, o) {
		bar.clear()
		if err != nil {
			return err
		}
		if c.topic != "" && c.topic != string(r.Topic) {
			continue
		}
		if err := c.print(&r); err != nil {
			return err
		}
	}
	bar.clear()
	c.total.Bytes += stats.Bytes
	c.total.Records += stats.Records
	c.total.Damaged += stats.Damaged
	c.total.Nearly += stats.Nearly
	return nil
}

func (c *carving) print(r *inspect.Carved) error {
	rec := inspect.LogRecord{Record: r.Record, Damaged: r.Damaged}
	switch {
	case c.export != "" && r.Damaged != "":
		return nil
	case c.export != "":
		return c.app.exportRecord(&rec, "stored", c.export)
	case c.app.json:
		return c.app.line(carvedRow{r.File, r.Offset, c.table.json(&rec)})
	}
	return c.table.row(nil, append([]any{r.Offset}, c.table.cells(&rec)...)...)
}

// end says what was found in all.
func (c *carving) end() error {
	a, t := c.app, c.total
	if t.Records == 0 {
		a.missing(errNothingCarved)
	}
	if t.Damaged > 0 {
		a.status = max(a.status, statusFindings)
	}
	if a.json {
		a.note(struct {
			Carved inspect.CarveStats `json:"carved"`
		}{t})
		return nil
	}
	fmt.Fprintf(a.errOut, "%d bytes looked at: %d records, %d damaged ones, %d places that look like one and are none\n", t.Bytes, t.Records, t.Damaged, t.Nearly)
	return nil
}
