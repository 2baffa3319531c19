package inspect

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// RebuiltFile is where a rebuild of a part notes which one it is.
const RebuiltFile = "rebuild.json"

// RebuiltPart is what part of a store a rebuild made again. The zero value is all of it.
type RebuiltPart struct {
	// From and To bound the records by their physical offsets, To not included. To 0: to the end of the log.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Topic, if not "", leaves only its own queues, light queues not among them; Queue, if not nil, only that one.
	Topic string `json:"topic,omitempty"`
	Queue *int32 `json:"queue,omitempty"`
}

// all says whether it is no part.
func (p *RebuiltPart) all() bool { return p.From == 0 && p.To == 0 && p.Topic == "" }

// check says why structures cannot be made of a part: only queues can.
func (p *RebuiltPart) check(d Derived) error {
	switch {
	case p.From < 0 || p.To < 0 || p.To > 0 && p.To < p.From:
		return errors.New("the range of offsets ends before it begins")
	case p.Queue != nil && p.Topic == "":
		return errors.New("a queue without its topic")
	case !p.all() && (d.Index || d.States || d.Redo || d.Checkpoint):
		return errors.New("only consume queues can be made again in part; everything else needs the whole log")
	}
	return nil
}

// save notes the part in the directory that was made.
func (p *RebuiltPart) save(to mappedfile.FS) (err error) {
	if p.all() {
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := to.OpenFile(RebuiltFile, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt(append(b, '\n'), 0); err != nil {
		return err
	}
	return errors.Join(f.Sync(), to.SyncDir("."))
}

// Tree is the folder of the queues that the part is bound to, in the store directory.
func (p *RebuiltPart) Tree() string {
	if p.Queue == nil {
		return path.Join(queueDir, p.Topic)
	}
	return path.Join(queueDir, p.Topic, strconv.Itoa(int(*p.Queue)))
}

// ReadRebuilt says which part a directory is that a rebuild made. The error matches [mappedfile.ErrCorrupt] when the note
// cannot be read as one.
func ReadRebuilt(fsys fs.FS) (p RebuiltPart, err error) {
	f, err := fsys.Open(RebuiltFile)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var b [4096]byte // more than any note has
	n, _ := f.Read(b[:])
	err = json.Unmarshal(b[:n], &p)
	if err == nil && (!fs.ValidPath(p.Tree()) || p.From < 0 || p.To < 0) {
		err = errors.New("no part of a store")
	}
	if err != nil {
		err = &mappedfile.CorruptError{File: RebuiltFile, Err: err}
	}
	return p, err
}
