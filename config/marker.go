package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MarkerFile is our own note in a store directory; RocketMQ ignores it.
const MarkerFile = "config/rocketstore.json"

// Marker is what we note of a directory that we open for writing: which line's rules it follows and how large its files
// are, which stand nowhere else.
type Marker struct {
	Dialect           string     `json:"dialect"`
	TransactionEngine string     `json:"transactionEngine,omitempty"`
	SegmentSize       int64      `json:"segmentSize,omitempty"`      // bytes
	QueueSegmentSize  int64      `json:"queueSegmentSize,omitempty"` // bytes
	StateSegmentSize  int64      `json:"stateSegmentSize,omitempty"` // bytes
	RedoSegmentSize   int64      `json:"redoSegmentSize,omitempty"`  // bytes
	IndexSlots        int32      `json:"indexSlots,omitempty"`
	IndexEntries      int32      `json:"indexEntries,omitempty"`
	Clean             *CleanStop `json:"clean,omitempty"` // nil: nothing is noted of the last stop
}

// CleanStop is what we note of our last clean stop and our last checkpoint. Offsets are physical, -1 for none.
type CleanStop struct {
	LogEnd      int64      `json:"logEnd"`
	LastRecord  int64      `json:"lastRecord"`
	Fingerprint uint64     `json:"fingerprint,string"`
	Dispatched  int64      `json:"dispatched"`
	RedoEnd     int64      `json:"redoEnd,omitempty"` // a unit's index, not an offset
	Boot        string     `json:"boot,omitempty"`    // the run of the system, as mappedfile.BootID names it
	Index       *IndexMark `json:"index,omitempty"`
}

// IndexMark is how much of the last index file was durable then: the file's name, its header of 40 bytes, an xxhash64 of its
// entries, and a state of that hash from which to go on.
type IndexMark struct {
	File   string `json:"file"`
	Header []byte `json:"header"`
	Sum    uint64 `json:"sum,string"`
	State  []byte `json:"state"`
}

// LoadMarker reads the note of a store directory. It matches fs.ErrNotExist when there is none, or none that can be read: it
// holds nothing that the directory does not show as well.
func LoadMarker[F File](fsys FS[F]) (m *Marker, err error) {
	f, err := fsys.OpenFile(MarkerFile, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	const most = 1 << 20
	b := make([]byte, min(size, most))
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m = new(Marker)
	if err := json.Unmarshal(b[:n], m); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", MarkerFile, fs.ErrNotExist, err)
	}
	if !m.sound() {
		return nil, fmt.Errorf("%s: %w: it has sizes that no store has", MarkerFile, fs.ErrNotExist)
	}
	return m, nil
}

// sound says whether the sizes are those of files that can be.
func (m *Marker) sound() bool {
	return m.SegmentSize >= 0 && m.IndexSlots >= 0 && m.IndexEntries >= 0 && m.QueueSegmentSize >= 0 && m.QueueSegmentSize%20 == 0 &&
		m.StateSegmentSize >= 0 && m.StateSegmentSize%24 == 0 && m.RedoSegmentSize >= 0 && m.RedoSegmentSize%20 == 0
}

// SaveMarker writes the note, so that after a crash either the old or the new one is there.
func SaveMarker[F File](fsys FS[F], m *Marker) error {
	b, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	return saveAside(fsys, MarkerFile, b)
}

// saveAside writes a file of config/ under another name first, and makes it durable.
func saveAside[F File](fsys FS[F], name string, b []byte) error {
	if err := fsys.MkdirAll("config", 0o750); err != nil {
		return err
	}
	aside := name + ".tmp"
	if err := writeWhole(fsys, aside, b); err != nil {
		return err
	}
	if err := fsys.Rename(aside, name); err != nil {
		return err
	}
	return errors.Join(fsys.SyncDir("config"), fsys.SyncDir("."))
}

func writeWhole[F File](fsys FS[F], name string, b []byte) (err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(int64(len(b))); err != nil {
		return err
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Sync()
}
