package repair

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// State says how far a repair is.
type State string

// The states of a journal.
const (
	Begun   State = "begun"   // some of the steps are done
	Done    State = "done"    // all are
	Undoing State = "undoing" // some are undone
	Undone  State = "undone"  // the store is as it was
)

// Op is what a step does.
type Op string

// The operations.
const (
	// Move gives File the name To, inside the journal's folder.
	Move Op = "move"
	// Place puts a new file, which lies in the journal's folder as Bytes, at File.
	Place Op = "place"
	// Patch writes over Length bytes of File from Offset on.
	Patch Op = "patch"
	// Resize gives File the length NewSize in place of Size.
	Resize Op = "resize"
)

// Step is one change of a repair. Names are paths in the store directory, but for Saved and Bytes, which are names in the
// journal's folder.
type Step struct {
	Op      Op     `json:"op"`
	File    string `json:"file"`
	To      string `json:"to,omitempty"`
	Offset  int64  `json:"offset,omitempty"`
	Length  int64  `json:"length,omitempty"`
	Saved   string `json:"saved,omitempty"` // the bytes that stood there
	Bytes   string `json:"bytes,omitempty"` // the new bytes; "": zeros
	Size    int64  `json:"size,omitempty"`
	NewSize int64  `json:"newSize,omitempty"`
	// Why is for people.
	Why string `json:"why,omitempty"`

	content []byte                          // of what Patch writes, nil: zeros; or of what Place puts there
	source  func() (mappedfile.File, error) // in place of content
}

// Journal is the account of one repair.
type Journal struct {
	Number int    `json:"number"`
	Kind   string `json:"kind"` // cut, skip, drop, restore, swap
	State  State  `json:"state"`
	Steps  []Step `json:"steps"`
	// After is a hash of what the store was when the repair was done, "" in journals that do not say.
	After string `json:"after,omitempty"`
	// Next says what should be done when the repair is done, in words.
	Next string `json:"next,omitempty"`
}

// Dir is the journal's folder in the store directory.
func (j *Journal) Dir() string {
	return path.Join(recovery.LostAndFound, journalPrefix+strconv.Itoa(j.Number))
}

const (
	journalPrefix = "repair."
	journalFile   = "journal.json"
	filePerm      = 0o640
	dirPerm       = 0o750
	// maxJournal bounds what is read of a journal, bytes.
	maxJournal = 256 << 20
)

// journals reads the journals of a store, the oldest first. A folder without one is what a crash left of a repair that
// never began; its number is not used again.
func journals(fsys mappedfile.FS) (all []*Journal, next int, err error) {
	entries, err := fsys.ReadDir(recovery.LostAndFound)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	next = 1
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), journalPrefix)
		n, err := strconv.ParseInt(digits, 10, 32)
		if !ok || err != nil || n < 1 {
			continue
		}
		next = max(next, int(n)+1)
		j, err := readJournal(fsys, path.Join(recovery.LostAndFound, e.Name(), journalFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		j.Number = int(n)
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *Journal) int { return cmp.Compare(a.Number, b.Number) })
	return all, next, nil
}

func readJournal(fsys mappedfile.FS, name string) (j *Journal, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxJournal {
		return nil, &mappedfile.CorruptError{File: name, Offset: maxJournal, Err: errors.New("no journal of a repair is so long")}
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); err != nil && (!errors.Is(err, io.EOF) || n < len(b)) {
		return nil, err
	}
	j = &Journal{}
	if err := json.Unmarshal(b, j); err != nil {
		return nil, &mappedfile.CorruptError{File: name, Err: err}
	}
	for i := range j.Steps {
		if err := j.Steps[i].check(); err != nil {
			return nil, &mappedfile.CorruptError{File: name, Err: fmt.Errorf("step %d: %w", i, err)}
		}
	}
	return j, nil
}

// check says whether a step that was read is one that this package writes: a journal must not lead to other files.
func (s *Step) check() error {
	names := []string{s.File}
	switch s.Op {
	case Move:
		names = append(names, s.To)
	case Place:
		names = append(names, s.Bytes)
	case Patch:
		names = append(names, s.Saved)
		if s.Bytes != "" {
			names = append(names, s.Bytes)
		}
	case Resize:
	default:
		return fmt.Errorf("unknown operation %q", s.Op)
	}
	for _, n := range names {
		if !fs.ValidPath(n) || n == "." {
			return fmt.Errorf("%q is no name in a store", n)
		}
	}
	if s.Offset < 0 || s.Length < 0 || s.Size < 0 || s.NewSize < 0 || s.Offset+s.Length < s.Offset {
		return errors.New("an offset or a length is below 0")
	}
	return nil
}

// save writes the journal with a state, whole and durable.
func (j *Journal) save(fsys mappedfile.FS, state State) error {
	j.State = state
	b, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return err
	}
	name := path.Join(j.Dir(), journalFile)
	if err := writeFile(fsys, name+".tmp", append(b, '\n')); err != nil {
		return err
	}
	return errors.Join(fsys.Rename(name+".tmp", name), fsys.SyncDir(j.Dir()))
}

// writeFile makes a file with that content and syncs it; its name is durable with its folder's.
func writeFile(fsys mappedfile.FS, name string, b []byte) (err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if len(b) > 0 {
		if _, err := f.WriteAt(b, 0); err != nil {
			return err
		}
	}
	return f.Sync()
}
