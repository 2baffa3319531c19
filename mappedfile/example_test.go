package mappedfile_test

import (
	"errors"
	"fmt"
	"os"
	"testing/fstest"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func ExampleQueue() {
	fsys := memfs.New() // or OpenDir
	q, err := mappedfile.Open(fsys, "commitlog", &mappedfile.Options{SegmentSize: 8192})
	if err != nil {
		fmt.Println(err)
		return
	}
	off, _ := q.Append([]byte("hello"))
	fmt.Println("written at", off, "durable to", q.Flushed())
	if err := q.Sync(0); err != nil {
		fmt.Println(err)
	}
	fmt.Println("durable to", q.Flushed())

	v, _ := q.View(off, 5)
	fmt.Printf("%s in %s\n", v.Bytes(), v.File())
	v.Release()
	fmt.Println(q.Close())
	// Output:
	// written at 0 durable to 0
	// durable to 5
	// hello in commitlog/00000000000000000000
	// <nil>
}

func ExampleQueue_Append_full() {
	q, _ := mappedfile.Open(memfs.New(), "commitlog", &mappedfile.Options{SegmentSize: 8})
	_, _ = q.Append([]byte("12345"))
	_, err := q.Append([]byte("6789"))
	fmt.Println(errors.Is(err, mappedfile.ErrSegmentFull), q.Remaining())
	_ = q.Fill([]byte("-"))
	off, _ := q.Append([]byte("6789"))
	fmt.Println(off)
	// Output:
	// true 3
	// 8
}

// After an unclean stop the owner looks for the end of the data and cuts there.
func ExampleQueue_TruncateAfter() {
	fsys := memfs.New()
	_ = fsys.WriteFile("log/00000000000000000000", []byte("good!torn"))
	_ = fsys.WriteFile("log/00000000000000000009", make([]byte, 9))
	q, _ := mappedfile.Open(fsys, "log", &mappedfile.Options{SegmentSize: 9})
	fmt.Println(q.Bounds())
	v, _ := q.ViewSegment(0)
	end := int64(len("good!"))
	v.Release()
	fmt.Println(q.TruncateAfter(end))
	fmt.Println(q.Bounds())
	fmt.Println(len(q.Segments()))
	// Output:
	// 0 18
	// <nil>
	// 0 5
	// 1
}

func ExampleOpen_notices() {
	store := mappedfile.IOFS(fstest.MapFS{
		"log/00000000000000000000": {Data: []byte("12345678")},
		"log/00000000000000000016": {Data: []byte("123")},
		"log/notes.txt":            {},
	})
	q, _ := mappedfile.Open(store, "log", &mappedfile.Options{SegmentSize: 8, ReadOnly: true})
	for _, n := range q.Notices() {
		fmt.Println(n.Text)
	}
	// Output:
	// not a segment, left alone: log/notes.txt
	// short segment log/00000000000000000016: 3 of 8 bytes
	// gap of 8 bytes between log/00000000000000000000 and log/00000000000000000016
}

func ExampleGuard() {
	dir, _ := os.MkdirTemp("", "guard")
	defer func() { _ = os.RemoveAll(dir) }()
	fsys, _ := mappedfile.OpenDir(dir, nil)
	f, _ := fsys.OpenFile("a", os.O_RDWR|os.O_CREATE, 0o640)
	_ = f.Truncate(1 << 20)
	m, _ := f.Map(1<<20, mappedfile.ReadOnly)
	_ = os.Truncate(dir+"/a", 0) // by another program

	err := mappedfile.Guard("a", func() error {
		fmt.Println(m.Bytes()[0])
		return nil
	})
	fmt.Println(errors.Is(err, mappedfile.ErrFault), err)
	// Output: true fault in mapped memory: a
}
