package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// Names of the directories of a store.
const (
	CommitLogDir  = "commitlog"
	QueueDir      = "consumequeue"
	BatchQueueDir = "batchconsumequeue"
	IndexDir      = "index"
	StateTableDir = "transaction/statetable"
	RedoLogDir    = "transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0"
)

// Size is the length that the files of one kind have, in bytes, and a file that shows it. Zero: no file tells.
type Size struct {
	Bytes int64
	File  string
	Alone bool // no other file has that length, so it may be one that was cut short
}

// Identity is what a directory tells of itself: which line of RocketMQ wrote it and how large its files are.
type Identity struct {
	Empty                              bool   // there is no store here
	Line                               string // "3.1", "4.9" or "5.3": the name of the dialect
	Why                                string // what shows it
	Certain                            bool   // something shows it; else it is what nothing speaks against
	RocksDB                            bool   // the queues are a RocksDB database (5.2+)
	BatchQueues                        bool   // there are batch queues (5.x)
	CommitLog, Queue, StateTable, Redo Size
	IndexSlots, IndexEntries           int32 // 0: no file tells
	IndexFile                          string
}

// Identify looks at a directory, by the order of evidence of design.md 4.7. It reads a bounded number of records and
// changes nothing.
func Identify(fsys mappedfile.FS) (*Identity, error) {
	id := &Identity{}
	root, err := fsys.ReadDir(".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := make(map[string]bool)
	for _, e := range root {
		names[e.Name()] = true
	}
	id.Empty = !names[CommitLogDir] && !names[QueueDir] && !names["transaction"]
	if id.CommitLog, err = segmentSize(fsys, CommitLogDir); err != nil {
		return nil, err
	}
	if id.Queue, err = queueSize(fsys); err != nil {
		return nil, err
	}
	if id.StateTable, err = segmentSize(fsys, StateTableDir); err != nil {
		return nil, err
	}
	if id.Redo, err = segmentSize(fsys, RedoLogDir); err != nil {
		return nil, err
	}
	signed, err := id.lookAtIndex(fsys)
	if err != nil {
		return nil, err
	}
	return id, id.line(fsys, names, signed)
}

// line finds out which line wrote the directory.
func (id *Identity) line(fsys mappedfile.FS, names map[string]bool, signedHash bool) error {
	set := func(line, why string) error {
		id.Line, id.Why, id.Certain = line, why, true
		return nil
	}
	id.BatchQueues = names[BatchQueueDir]
	id.RocksDB = isRocksDB(fsys, QueueDir)
	if names["transaction"] {
		return set("3.1", "there is a folder transaction")
	}
	for _, n := range []string{"timerwheel", "abort.bak", BatchQueueDir} {
		if names[n] {
			return set("5.3", "there is "+n)
		}
	}
	if c, damaged, err := ReadCheckpoint(fsys); err != nil {
		return err
	} else if damaged == nil && (c.MasterFlushed != 0 || c.ConfirmOffset != 0) {
		return set("5.3", "the checkpoint holds a confirm offset")
	}
	if has, err := contains(fsys, "config/topics.json", `"attributes"`); err != nil {
		return err
	} else if has {
		return set("5.3", "a topic in config/topics.json has attributes")
	}
	line, why, err := lookAtRecords(fsys, id.CommitLog.Bytes)
	switch {
	case err != nil:
		return err
	case line != "":
		return set(line, why)
	case signedHash:
		return set("3.1", "the index holds a negative key hash")
	}
	id.Line, id.Why = "4.9", "nothing tells otherwise"
	return nil
}

// isRocksDB says whether a directory is a RocksDB database: it has a file CURRENT that names the manifest.
func isRocksDB(fsys mappedfile.FS, dir string) bool {
	has, err := contains(fsys, path.Join(dir, "CURRENT"), "MANIFEST-")
	return err == nil && has
}

// sampleRecords is how many records of the first and of the last segment are looked at.
const sampleRecords = 1000

// lookAtRecords looks for what only later lines write.
func lookAtRecords(fsys mappedfile.FS, size int64) (line, why string, err error) {
	files, err := segmentFiles(fsys, CommitLogDir)
	if err != nil || len(files) == 0 {
		return "", "", err
	}
	if len(files) > 2 {
		files = []segmentFile{files[0], files[len(files)-1]}
	}
	for _, f := range files {
		l, w, err := sample(fsys, f)
		if err != nil {
			return "", "", err
		}
		if l > line {
			line, why = l, w
		}
	}
	return line, why, nil
}

func sample(fsys mappedfile.FS, sf segmentFile) (line, why string, err error) {
	f, err := fsys.OpenFile(sf.name, os.O_RDONLY, 0)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s := commitlog.NewScanner(sf.name, sf.start, f, sf.length)
	for range sampleRecords {
		if !s.Next() {
			break
		}
		r := s.Record()
		switch {
		case r.Magic == commitlog.MagicV2:
			return "5.3", fmt.Sprintf("record of version 2 at %d", r.PhysicalOffset), nil
		case line != "":
		case message.Lookup(r.Properties, message.PropertyUniqueKey) != nil, message.Lookup(r.Properties, message.PropertyCluster) != nil:
			line, why = "4.9", fmt.Sprintf("record at %d has UNIQ_KEY or CLUSTER", r.PhysicalOffset)
		case r.BornHost.Is6() || r.StoreHost.Is6():
			line, why = "4.9", fmt.Sprintf("record at %d has an IPv6 host", r.PhysicalOffset)
		}
	}
	return line, why, nil
}

// lookAtIndex takes the shape of the index files, and says whether an entry holds a negative hash, as only 3.1 writes.
func (id *Identity) lookAtIndex(fsys mappedfile.FS) (signed bool, err error) {
	shape, ok, err := index.InferDir(fsys, IndexDir)
	if err != nil || !ok {
		return false, err
	}
	entries, err := fsys.ReadDir(IndexDir)
	if err != nil {
		return false, err
	}
	id.IndexSlots, id.IndexEntries = shape.Slots, shape.Entries
	for _, e := range entries {
		if _, isIndex := index.ParseFileName(e.Name()); !isIndex || !e.Type().IsRegular() {
			continue
		}
		id.IndexFile = path.Join(IndexDir, e.Name())
		if signed, err = hasNegativeHash(fsys, id.IndexFile, shape); signed || err != nil {
			return signed, err
		}
	}
	return false, nil
}

// hasNegativeHash looks at the first entries of an index file.
func hasNegativeHash(fsys mappedfile.FS, name string, shape index.Shape) (negative bool, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, min(sampleRecords, int64(shape.Entries))*index.EntrySize)
	n, err := f.ReadAt(b, index.HeaderSize+int64(shape.Slots)*index.SlotSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	for b = b[:n]; len(b) >= index.EntrySize; b = b[index.EntrySize:] {
		if e, err := index.DecodeEntry(b); err == nil && e.KeyHash < 0 {
			return true, nil
		}
	}
	return false, nil
}

// segmentFile is one file with a segment's name.
type segmentFile struct {
	name          string // path
	start, length int64
}

func segmentFiles(fsys mappedfile.FS, dir string) ([]segmentFile, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []segmentFile
	for _, e := range entries {
		start, ok := mappedfile.ParseSegmentName(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile by a live broker
		}
		if err != nil {
			return nil, err
		}
		files = append(files, segmentFile{path.Join(dir, e.Name()), start, info.Size()})
	}
	return files, nil
}

// segmentSize infers the size of a directory's segments: the length that most of its files have; of two that are as
// frequent, the one that fits the names.
func segmentSize(fsys mappedfile.FS, dir string) (Size, error) {
	files, err := segmentFiles(fsys, dir)
	if err != nil {
		return Size{}, err
	}
	return commonSize(files), nil
}

func commonSize(files []segmentFile) Size {
	count := make(map[int64]int)
	for _, f := range files {
		if f.length > 0 {
			count[f.length]++
		}
	}
	fits := func(size int64) int {
		for _, f := range files {
			if f.start%size != 0 {
				return 0
			}
		}
		return 1
	}
	sizes := slices.SortedFunc(maps.Keys(count), func(a, b int64) int {
		return cmp.Or(cmp.Compare(fits(b), fits(a)), cmp.Compare(count[b], count[a]), cmp.Compare(b, a))
	})
	if len(sizes) == 0 {
		return Size{}
	}
	for _, f := range files {
		if f.length == sizes[0] {
			return Size{f.length, f.name, count[f.length] == 1}
		}
	}
	return Size{}
}

// queueSize infers the size of consume queue files from the first queues that have any.
func queueSize(fsys mappedfile.FS) (Size, error) {
	const enough = 16 // files
	var files []segmentFile
	topics, err := fsys.ReadDir(QueueDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Size{}, err
	}
	for _, t := range topics {
		if !t.IsDir() {
			continue
		}
		ids, err := fsys.ReadDir(path.Join(QueueDir, t.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Size{}, err
		}
		for _, i := range ids {
			if !i.IsDir() {
				continue
			}
			more, err := segmentFiles(fsys, path.Join(QueueDir, t.Name(), i.Name()))
			if err != nil {
				return Size{}, err
			}
			if files = append(files, more...); len(files) >= enough {
				return commonSize(files), nil
			}
		}
	}
	return commonSize(files), nil
}

// contains says whether a small text file holds a string.
func contains(fsys mappedfile.FS, name, text string) (bool, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return false, err
	}
	const most = 1 << 20
	b := make([]byte, min(size, most))
	n, _ := f.ReadAt(b, 0)
	return strings.Contains(string(b[:n]), text), nil
}
