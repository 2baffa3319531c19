package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

var errNotNew = errors.New("the directory is not empty: import makes a new store")

func (a *app) importRecords() *cobra.Command {
	var w writing
	var s importSend
	cmd := &cobra.Command{
		Use:   "import DIR [FILE] | import -n HOST:PORT [FILE]",
		Short: "Make a store of what export wrote, or send it to brokers",
		Long: `Make a new store of what "storectl export" wrote, from FILE or the standard input. Records keep their queue
offsets, store times and bytes; only their places in the log are new, and with them what refers to a place: the
prepared message of a transaction of 3.1, and the CRC over a whole record of 5.x.` + importHelp,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dirs := 1
			if s.namesrv != "" {
				dirs = 0
			}
			switch err := s.check(cmd); {
			case err != nil:
				return err
			case len(args) < dirs:
				return errors.New("say the DIR of a new store, or --namesrv to send to brokers")
			case len(args) > dirs+1:
				return errors.New("with --namesrv there is no DIR, only one FILE")
			}
			in := cmd.InOrStdin()
			if len(args) == dirs+1 {
				f, err := os.Open(args[dirs])
				if err != nil {
					return err
				}
				defer func() { _ = f.Close() }() // it was only read
				in = f
			}
			if dirs == 0 {
				return a.toBrokers(cmd.Context(), &s, in)
			}
			return a.newStore(cmd.Context(), args[0], &w, in)
		},
	}
	w.flags(cmd)
	s.flags(cmd)
	return cmd
}

// newStore makes a store of what in holds.
func (a *app) newStore(ctx context.Context, dir string, w *writing, in io.Reader) error {
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return fmt.Errorf("%s: %w", dir, errNotNew)
	}
	if w.opts.SegmentSize == 0 {
		w.opts.SegmentSize = 1 << 30
	}
	w.opts.HoldDelayed = true
	s, err := rocketstore.OpenContext(ctx, dir, &w.opts)
	if err != nil {
		return err
	}
	i := &importer{store: s, segment: w.opts.SegmentSize, moved: make(map[int64]int64)}
	failed := i.run(ctx, in)
	if failed != nil {
		failed = fmt.Errorf("%w; %s holds the %d records before it: remove it before another import", failed, dir, i.records)
	}
	// What was imported is closed in order, also after Ctrl-C.
	if err = s.Close(context.WithoutCancel(ctx)); err == nil {
		err = clampCheckpoint(dir, i.latest)
	}
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	return a.table(column{"RECORDS", -10}, column{"END", -12}).row(struct {
		Records int64 `json:"records"`
		End     int64 `json:"end"`
	}{i.records, i.end}, i.records, i.end)
}

// importer puts records into a new store.
type importer struct {
	store   *rocketstore.Store
	segment int64 // bytes of a commit log file
	end     int64 // of the log, with what is in batch
	batch   []byte
	records int64
	latest  int64           // greatest store time, ms
	moved   map[int64]int64 // new place of each prepared message that is not ended
}

// clampCheckpoint takes times off a store's checkpoint that are later than all records have: the store times of what was
// imported lie in the past, and a checkpoint beyond them would let recovery start too late.
func clampCheckpoint(dir string, latest int64) error {
	fsys, err := mappedfile.OpenDir(dir, &mappedfile.DirOptions{})
	if err != nil {
		return err
	}
	c, damaged, err := recovery.ReadCheckpoint(fsys)
	if err = errors.Join(err, damaged); err != nil {
		return err
	}
	c.Physic, c.Logics, c.Index = min(c.Physic, latest), min(c.Logics, latest), min(c.Index, latest)
	return recovery.WriteCheckpoint(fsys, c, 0o640)
}

// importBatch is how many bytes go into the store at a time.
const importBatch = 1 << 20

func (i *importer) run(ctx context.Context, in io.Reader) error {
	for b, err := range exportedRecords(in) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = i.add(ctx, b)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", i.records+1, err)
		}
		i.records++
	}
	return i.flush(ctx)
}

// maxImported bounds the size of a record that is imported: some bytes more than MaxPlainBody.
const maxImported = inspect.MaxPlainBody + 1<<17

// exportedRecords gives the records that export wrote, as JSON lines or raw. Each is valid until the next.
func exportedRecords(in io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := bufio.NewReaderSize(in, 64<<10)
		first, err := r.Peek(1)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				yield(nil, err)
			}
			return
		}
		next := nextRaw(r)
		if first[0] == '{' {
			lines := json.NewDecoder(r)
			next = func() ([]byte, error) {
				var e exported
				err := lines.Decode(&e)
				return e.Record, err
			}
		}
		for {
			b, err := next()
			if errors.Is(err, io.EOF) || !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// nextRaw reads records that stand one behind the other.
func nextRaw(r *bufio.Reader) func() ([]byte, error) {
	var b []byte
	return func() ([]byte, error) {
		head, err := r.Peek(commitlog.BlankSize)
		if err != nil {
			if len(head) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		size := int64(int32(binary.BigEndian.Uint32(head)))
		if magic := binary.BigEndian.Uint32(head[4:]); magic != commitlog.MagicV1 && magic != commitlog.MagicV2 {
			return nil, fmt.Errorf("%w: %08x", commitlog.ErrMagic, magic)
		}
		if size < commitlog.MinRecordSize || size > maxImported {
			return nil, fmt.Errorf("%w: size %d", commitlog.ErrSize, size)
		}
		if int64(cap(b)) < size {
			b = make([]byte, size)
		}
		b = b[:size]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		return b, nil
	}
}

// add puts one record at the end.
func (i *importer) add(ctx context.Context, b []byte) error {
	r, err := commitlog.Decode(b)
	if err != nil {
		return err
	}
	if int64(r.Size)+commitlog.BlankSize > i.segment {
		return fmt.Errorf("it has %d bytes, a commit log file %d", r.Size, i.segment)
	}
	if left := i.segment - i.end%i.segment; int64(r.Size)+commitlog.BlankSize > left {
		if err := i.fill(ctx, left); err != nil {
			return err
		}
	}
	i.latest = max(i.latest, r.StoreTimestamp)
	was := r.PhysicalOffset
	r.PhysicalOffset = i.end
	switch r.SysFlag.Transaction() {
	case message.FlagPrepared:
		i.moved[was] = i.end
	case message.FlagCommit, message.FlagRollback:
		if at, ok := i.moved[r.PreparedTransactionOffset]; ok {
			r.PreparedTransactionOffset = at
		}
	}
	moved := r.AppendTo(nil)
	if _, _, ok := commitlog.PropertyCRC(b); ok {
		moved = commitlog.AppendPropertyCRC(moved[:len(moved)-commitlog.PropertyCRCSize])
	}
	i.batch = append(i.batch, moved...)
	i.end += int64(len(moved))
	if len(i.batch) >= importBatch {
		return i.flush(ctx)
	}
	return nil
}

// fill ends a file of the log with a blank.
func (i *importer) fill(ctx context.Context, left int64) error {
	i.batch = commitlog.AppendBlank(i.batch, int(left))
	for rest := left - commitlog.BlankSize; rest > 0; {
		n := min(rest, importBatch)
		i.batch = append(i.batch, make([]byte, n)...)
		rest -= n
		if err := i.flushTo(ctx, left-rest); err != nil {
			return err
		}
	}
	i.end += left
	return nil
}

// flush appends what is in the batch, which ends at i.end.
func (i *importer) flush(ctx context.Context) error { return i.flushTo(ctx, 0) }

// flushTo appends what is in the batch, which ends ahead bytes behind i.end.
func (i *importer) flushTo(ctx context.Context, ahead int64) error {
	if len(i.batch) == 0 {
		return nil
	}
	err := i.store.AppendRaw(ctx, i.end+ahead-int64(len(i.batch)), i.batch)
	i.batch = i.batch[:0]
	return err
}
