package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// Explanation says what the bytes around a place in a file are.
type Explanation struct {
	File string `json:"file"`
	// Offset is the byte that was asked for, Start the first byte of what it belongs to, and Size that one's bytes.
	Offset int64 `json:"offset"`
	Start  int64 `json:"start"`
	Size   int64 `json:"size"`
	// What it is: "record of the commit log", "unit 3 of queue T/0", and so on.
	What   string           `json:"what"`
	Fields []ExplainedField `json:"fields"`
	// Field is the number of the field with the byte, -1 when it is in none.
	Field int `json:"field"`
	// Around are the bytes around the one that was asked for when the first ones of its field do not show it, and
	// AroundOffset says where in the file they begin.
	Around       []byte `json:"around,omitempty"`
	AroundOffset int64  `json:"aroundOffset,omitempty"`
	// Notes are what else there is to say, such as what a unit points to.
	Notes []string `json:"notes,omitempty"`
}

// ExplainedField is one field.
type ExplainedField struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"` // in the file
	Size   int64  `json:"size"`
	Value  string `json:"value"`
	Bytes  []byte `json:"bytes"` // at most the first 64
}

// maxFieldBytes bounds ExplainedField.Bytes.
const maxFieldBytes = 64

// ErrNothingThere says that a file has no byte at an offset, or that it is no file that can be explained.
var ErrNothingThere = errors.New("nothing to explain there")

// Explain says which record, unit or entry the byte at an offset of a file belongs to, and which of its fields. File is the
// path inside the store directory. In the commit log and in extensions it walks from the file's start, or from the start
// of what follows the last damage. It returns [ErrNothingThere] or an error of reading.
func (d *Dir) Explain(file string, offset int64) (*Explanation, error) {
	file = path.Clean(file)
	if !fs.ValidPath(file) {
		return nil, fmt.Errorf("%s: %w: no path inside the directory", file, ErrNothingThere)
	}
	f, err := d.open(file)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if offset < 0 || offset >= f.size {
		return nil, fmt.Errorf("%s: %w: the file has %d bytes", file, ErrNothingThere, f.size)
	}
	x := &explainer{Explanation: Explanation{File: file, Offset: offset, Field: -1}, dir: d, f: f}
	if err := x.explain(); err != nil {
		return nil, err
	}
	for i, field := range x.Fields {
		if field.Offset <= offset && offset < field.Offset+field.Size {
			x.Field = i
		}
	}
	return &x.Explanation, x.around()
}

// around reads the bytes around the one that was asked for, if its field's first bytes do not show it.
func (x *explainer) around() error {
	if x.Field < 0 || x.Offset < x.Fields[x.Field].Offset+maxFieldBytes {
		return nil
	}
	field := x.Fields[x.Field]
	x.AroundOffset = x.Offset - (x.Offset-field.Offset)%16 - 16
	x.Around = make([]byte, min(48, field.Offset+field.Size-x.AroundOffset, x.f.size-x.AroundOffset))
	n, err := x.f.ReadAt(x.Around, x.AroundOffset)
	x.Around = x.Around[:n]
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// explainer puts an Explanation together.
type explainer struct {
	Explanation
	dir *Dir
	f   *file
	b   []byte // from Start on
	at  int64  // where in b the next field starts
}

// explain chooses by the path.
func (x *explainer) explain() error {
	start, segment := mappedfile.ParseSegmentName(path.Base(x.File))
	dir := path.Dir(x.File)
	queue := path.Base(path.Dir(dir)) + "/" + path.Base(dir)
	top, _, _ := strings.Cut(x.File, "/")
	switch {
	case top == commitLogDir && segment:
		return x.log(Segment{x.File, start, x.f.size})
	case top == queueDir && segment:
		return x.unit(consumequeue.UnitSize, start, "queue "+queue, x.queueUnit)
	case top == batchQueueDir && segment:
		return x.unit(consumequeue.BatchUnitSize, start, "batch queue "+queue, x.batchUnit)
	case top == extDir && segment:
		return x.extension(start)
	case dir == recovery.StateTableDir && segment:
		return x.unit(txstate.RecordSize, start, "the state table", x.state)
	case dir == recovery.RedoLogDir && segment:
		return x.unit(redolog.UnitSize, start, "the redo log", x.redo)
	case dir == indexDir && isIndexName(path.Base(x.File)):
		return x.index()
	case x.File == recovery.CheckpointFile:
		return x.checkpoint()
	case dir == "timerlog" && segment:
		return x.unit(52, start, "the timer log", x.timerLog)
	case x.File == "timerwheel":
		return x.unit(32, 0, "the timer wheel", x.timerWheel)
	case dir == configDir:
		return x.text()
	}
	return fmt.Errorf("%s: %w: no file of a kind that is known", x.File, ErrNothingThere)
}

// read reads size bytes at start as what is explained.
func (x *explainer) read(start, size int64) error {
	x.Start, x.Size, x.at = start, size, 0
	x.b = make([]byte, min(size, maxTorn))
	n, err := x.f.ReadAt(x.b, start)
	x.b = x.b[:n]
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// unit explains one of a run of units of equal size.
func (x *explainer) unit(size, start int64, of string, fields func()) error {
	if err := x.read(x.Offset-x.Offset%size, size); err != nil {
		return err
	}
	x.What = fmt.Sprintf("unit %d of %s", (start+x.Start)/size, of)
	if int64(len(x.b)) < size {
		x.Notes = append(x.Notes, fmt.Sprintf("the file ends after %d of its %d bytes", len(x.b), size))
		x.add("rest", int64(len(x.b)), "")
		return nil
	}
	fields()
	if len(strings.Trim(string(x.b), "\x00")) == 0 {
		x.Notes = append(x.Notes, "all zeros: nothing was written here")
	}
	return nil
}

// text explains a byte of a file of text.
func (x *explainer) text() error {
	if err := x.read(0, x.f.size); err != nil {
		return err
	}
	before := string(x.b[:min(x.Offset, int64(len(x.b)))])
	line := strings.Count(before, "\n") + 1
	from := int64(strings.LastIndexByte(before, '\n') + 1)
	text, _, _ := strings.Cut(string(x.b[from:]), "\n")
	x.What = fmt.Sprintf("line %d, byte %d of it", line, x.Offset-from+1)
	x.Start, x.Size, x.b, x.at = from, int64(len(text)+1), x.b[from:], 0
	x.add("line", min(int64(len(text)+1), x.f.size-from), text)
	return nil
}

// add adds a field of n bytes.
func (x *explainer) add(name string, n int64, value string) {
	n = max(0, min(n, int64(len(x.b))-x.at))
	x.Fields = append(x.Fields, ExplainedField{
		Name: name, Offset: x.Start + x.at, Size: n, Value: value, Bytes: append([]byte{}, x.b[x.at:x.at+min(n, maxFieldBytes)]...),
	})
	x.at += n
}

// number adds a number of n bytes and gives it. Text, if not nil, says it in words.
func (x *explainer) number(name string, n int64, text func(int64) string) int64 {
	if int64(len(x.b))-x.at < n {
		x.add(name, n, "the bytes end before it")
		return 0
	}
	v := int64(int8(x.b[x.at]))
	for _, c := range x.b[x.at+1 : x.at+n] {
		v = v<<8 | int64(c)
	}
	if text == nil {
		text = decimal
	}
	x.add(name, n, text(v))
	return v
}
