package rocketstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// shape is what all files of a directory share, and our own note of it.
type shape struct {
	segment, queueSegment     int64
	stateSegment, redoSegment int64
	engine                    Engine
	indexSlots, indexEntries  int32
	hint                      *recovery.Hint // nil: none
}

// The sizes that every line of RocketMQ has by default.
const (
	defaultSegment      = 1 << 30
	defaultQueueSegment = 6_000_000
)

// identify finds dialect and sizes: what the options ask for, what our note says and what the files show must agree.
func (s *Store) identify() error {
	id, err := recovery.Identify(s.fsys)
	if err != nil {
		return err
	}
	note, err := config.LoadMarker[mappedfile.File](s.fsys)
	if errors.Is(err, fs.ErrNotExist) {
		note = &config.Marker{}
	} else if err != nil {
		return err
	}
	if err := s.chooseDialect(id, note); err != nil {
		return err
	}
	if id.Empty { // the note is of a store that is not there any more, or never had a message: it may be given other sizes
		o := &s.opts
		note.SegmentSize, note.QueueSegmentSize = cmp.Or(o.SegmentSize, note.SegmentSize), cmp.Or((o.QueueSegmentSize+19)/20*20, note.QueueSegmentSize)
		note.StateSegmentSize, note.RedoSegmentSize = cmp.Or(o.StateSegmentSize, note.StateSegmentSize), cmp.Or(o.RedoSegmentSize, note.RedoSegmentSize)
		note.IndexSlots, note.IndexEntries = cmp.Or(o.IndexSlots, note.IndexSlots), cmp.Or(o.IndexEntries, note.IndexEntries)
	}
	if s.shape.segment, err = chooseSize("SegmentSize", s.opts.SegmentSize, id.CommitLog, note.SegmentSize, defaultSegment, commitlog.MinSegmentSize, 1); err != nil {
		return err
	}
	queueSize := (s.opts.QueueSegmentSize + 19) / 20 * 20
	if s.shape.queueSegment, err = chooseSize("QueueSegmentSize", queueSize, id.Queue, note.QueueSegmentSize, defaultQueueSegment, 1, 1); err != nil {
		return err
	}
	if s.shape.stateSegment, err = chooseSize("StateSegmentSize", s.opts.StateSegmentSize, id.StateTable, note.StateSegmentSize, txstate.DefaultSegmentSize, txstate.RecordSize, txstate.RecordSize); err != nil {
		return err
	}
	if s.shape.redoSegment, err = chooseSize("RedoSegmentSize", s.opts.RedoSegmentSize, id.Redo, note.RedoSegmentSize, redolog.DefaultSegmentSize, redolog.UnitSize, redolog.UnitSize); err != nil {
		return err
	}
	if err := s.chooseIndex(id, note); err != nil {
		return err
	}
	if h := note.Clean; h != nil {
		s.shape.hint = &recovery.Hint{
			LogEnd: h.LogEnd, LastRecord: h.LastRecord, Fingerprint: h.Fingerprint, Dispatched: h.Dispatched, RedoEnd: h.RedoEnd,
			SameBoot: h.Boot != "" && h.Boot == mappedfile.BootID(s.fsys),
		}
		if m := h.Index; m != nil {
			if head, err := index.DecodeHeader(m.Header); err == nil {
				s.shape.hint.Index = &index.Mark{File: m.File, Header: head, Sum: m.Sum, State: m.State}
			}
		}
	}
	return s.refuseForeign(id)
}

func (s *Store) chooseDialect(id *recovery.Identity, note *config.Marker) error {
	name := cmp.Or(s.opts.Dialect, note.Dialect, "4.9")
	if !id.Empty {
		shown, why, certain := id.Line, id.Why, id.Certain
		// Our note counts where the files show nothing else; what 4.9 writes, 5.3 does too.
		ownTable := note.TransactionEngine == StateTable.String() && shown == "3.1"
		if note.Dialect != "" && (!certain || ownTable || note.Dialect == "5.3" && shown == "4.9") {
			shown, why, certain = note.Dialect, "config/rocketstore.json says so", true
		}
		if s.opts.Dialect != "" && s.opts.Dialect != shown && certain {
			return fmt.Errorf("dialect %s asked for, but the directory is of %s: %s", s.opts.Dialect, shown, why)
		}
		if s.opts.Dialect == "" {
			name = shown
		}
	}
	d, err := dialect.Parse(name)
	if err != nil {
		return err
	}
	s.dialect = d
	return s.chooseEngine(id, note)
}

// chooseEngine keeps the engine that an existing directory shows.
func (s *Store) chooseEngine(id *recovery.Identity, note *config.Marker) error {
	shown := HalfTopic
	if s.dialect.HasStateTable || note.TransactionEngine == StateTable.String() {
		shown = StateTable
	}
	s.shape.engine = cmp.Or(s.opts.Transactions, shown)
	if !id.Empty && s.shape.engine != shown && (note.TransactionEngine != "" || s.dialect.HasStateTable) {
		return fmt.Errorf("engine %v asked for, but the directory has %v", s.shape.engine, shown)
	}
	return nil
}

// chooseSize gives the size of one kind of file in bytes, least or more and a multiple of unit. Where no file shows it, our note stands for the
// files, and where one file alone is shorter than noted: that one was cut.
func chooseSize(what string, asked int64, shown recovery.Size, noted, standard, least, unit int64) (int64, error) {
	if shown.Alone && shown.Bytes < noted && (asked == 0 || asked == noted) {
		return noted, nil
	}
	switch {
	case asked == 0 && shown.Bytes != 0 && (shown.Bytes < least || shown.Bytes%unit != 0):
		return 0, &mappedfile.CorruptError{File: shown.File, Offset: shown.Bytes, Err: fmt.Errorf(
			"the file has %d bytes, want %d or more and a multiple of %d, and nothing tells its right length: give %s", shown.Bytes, least, unit, what)}
	case asked != 0 && shown.Bytes != 0 && asked != shown.Bytes:
		return 0, &mappedfile.CorruptError{File: shown.File, Err: fmt.Errorf("the file has %d bytes, %s %d asked for", shown.Bytes, what, asked)}
	case asked != 0 && shown.Bytes == 0 && noted != 0 && asked != noted:
		return 0, contradiction(what, noted, asked)
	}
	return cmp.Or(shown.Bytes, asked, noted, standard), nil
}

// contradiction says that an option is not what we noted of a directory.
func contradiction(what string, noted, asked any) error {
	return &mappedfile.CorruptError{File: config.MarkerFile, Err: fmt.Errorf("the store was made with %s %v, %v asked for", what, noted, asked)}
}

func (s *Store) chooseIndex(id *recovery.Identity, note *config.Marker) error {
	for _, c := range []struct {
		what         string
		asked, shown int32
		noted        int32
	}{{"IndexSlots", s.opts.IndexSlots, id.IndexSlots, note.IndexSlots}, {"IndexEntries", s.opts.IndexEntries, id.IndexEntries, note.IndexEntries}} {
		switch {
		case c.asked != 0 && c.shown == 0 && c.noted != 0 && c.asked != c.noted:
			return contradiction(c.what, c.noted, c.asked)
		case c.asked != 0 && c.shown != 0 && c.asked != c.shown:
			return &mappedfile.CorruptError{File: id.IndexFile, Err: fmt.Errorf("the file has %d, %s %d asked for", c.shown, c.what, c.asked)}
		}
	}
	s.shape.indexSlots = cmp.Or(id.IndexSlots, s.opts.IndexSlots, note.IndexSlots, index.DefaultSlots)
	s.shape.indexEntries = cmp.Or(id.IndexEntries, s.opts.IndexEntries, note.IndexEntries, index.DefaultEntries)
	return nil
}

// refuseForeign refuses to write what we can only read, or not even that.
func (s *Store) refuseForeign(id *recovery.Identity) error {
	switch {
	case s.opts.ReadOnly:
	case id.BatchQueues:
		return &recovery.RefusedError{
			Kind: recovery.KindBatchQueue, File: recovery.BatchQueueDir,
			Text: "the store has batch queues, which are read but not written; open it read-only",
		}
	case id.RocksDB:
		return &recovery.RefusedError{
			Kind: recovery.KindRocksDB, File: recovery.QueueDir,
			Text: "the queues are a RocksDB database, which is not supported; the commit log can be read",
		}
	}
	return nil
}

// checkPlaces refuses what stands in the place of one of the store's files or folders.
func (s *Store) checkPlaces() error {
	files := []string{
		config.MarkerFile, config.IdleQueuesFile, (&config.ConsumerOffsets{}).File(), (&config.DelayOffsets{}).File(), (&config.Topics{}).File(),
	}
	for _, t := range s.opts.Tables {
		files = append(files, t.File())
	}
	return recovery.CheckPlaces(s.fsys, files...)
}

// saveMarker writes our note of dialect and sizes; h is what a clean stop or a checkpoint adds.
func (s *Store) saveMarker(h *recovery.Hint) error {
	m := &config.Marker{
		Dialect: s.dialect.Name, SegmentSize: s.shape.segment, QueueSegmentSize: s.shape.queueSegment,
		IndexSlots: s.shape.indexSlots, IndexEntries: s.shape.indexEntries, TransactionEngine: s.shape.engine.String(),
	}
	if s.tx != nil {
		m.StateSegmentSize, m.RedoSegmentSize = s.shape.stateSegment, s.shape.redoSegment
	}
	m.Clean = &config.CleanStop{
		LogEnd: h.LogEnd, LastRecord: h.LastRecord, Fingerprint: h.Fingerprint, Dispatched: h.Dispatched, RedoEnd: h.RedoEnd,
		Boot: mappedfile.BootID(s.fsys),
	}
	if x := h.Index; x != nil {
		m.Clean.Index = &config.IndexMark{File: x.File, Header: x.Header.AppendTo(nil), Sum: x.Sum, State: x.State}
	}
	return config.SaveMarker[mappedfile.File](s.fsys, m)
}
