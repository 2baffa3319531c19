package consumequeue_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
)

func ExampleDecode() {
	b := consumequeue.Unit{PhysicalOffset: 4096, Size: 169, TagsCode: 2598919}.AppendTo(nil)
	u, err := consumequeue.Decode(b)
	fmt.Println(u, u.End(), err)
	// Output: {4096 169 2598919} 4265 <nil>
}

func ExampleScan() {
	file := consumequeue.Unit{PhysicalOffset: 0, Size: 169}.AppendTo(nil)
	file = consumequeue.Unit{PhysicalOffset: 169, Size: -1}.AppendTo(file)
	for e, err := range consumequeue.Scan("consumequeue/T/0/00000000000000000000", 0, bytes.NewReader(file), int64(len(file))) {
		fmt.Println(e.Index, e.PhysicalOffset, errors.Is(err, mappedfile.ErrCorrupt))
	}
	// Output:
	// 0 0 false
	// 1 169 true
}

func ExampleScanBatch() {
	file := consumequeue.BatchUnit{PhysicalOffset: 824, Size: 156, BaseOffset: 10, BatchSize: 3}.AppendTo(nil)
	file = append(file, make([]byte, 46)...) // nothing written behind it
	for e, err := range consumequeue.ScanBatch("batchconsumequeue/T/0/00000000000000000000", 0, bytes.NewReader(file), int64(len(file))) {
		fmt.Println(e.Index, e.BaseOffset, e.BatchSize, err)
	}
	// Output: 0 10 3 <nil>
}

func ExampleScanExt() {
	file := consumequeue.ExtUnit{TagsCode: 2598919, Bitmap: []byte{0x80}}.AppendTo(nil)
	file = append(file, 0xFF, 0xFF) // the next unit lies in the next file
	for e, err := range consumequeue.ScanExt("consumequeue_ext/T/0/00000000000000000000", 0, bytes.NewReader(file), int64(len(file))) {
		fmt.Printf("%d %d %x %t %v\n", e.Offset, e.TagsCode, e.Bitmap, e.End, err)
	}
	// Output:
	// 0 2598919 80 false <nil>
	// 21 0  true <nil>
}
