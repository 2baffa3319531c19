package index_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func Example() {
	x, err := index.Open(memfs.New(), "index", &index.Options{Slots: 100, Entries: 400})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, keys := range []string{"order-1 red", "order-2", "order-3 red"} {
		err := x.Put(index.Keys{
			Topic: []byte("Orders"), Keys: []byte(keys), PhysicalOffset: int64(i) * 150, StoreTimestamp: 1_700_000_000_000 + int64(i),
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	for hit, err := range x.Query("Orders", "red", 1_700_000_000_000, 1_700_000_001_000) {
		fmt.Println(hit.File, hit.PhysicalOffset, err)
	}
	fmt.Println(x.Sync(), x.Close())
	// Output:
	// index/20231114221320000 300 <nil>
	// index/20231114221320000 0 <nil>
	// <nil> <nil>
}

func ExampleKeyHash() {
	hash := index.KeyHash("T", "C0A80102000018B4AAC2000000000000")
	fmt.Println(hash, index.Slot(hash, 100))
	// Output: -279940930 30
}

func ExampleScanFile() {
	fsys := memfs.New()
	x, err := index.Open(fsys, "index", &index.Options{Slots: 3, Entries: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := x.Put(index.Keys{Topic: []byte("T"), Keys: []byte("k1 k2"), PhysicalOffset: 42, StoreTimestamp: 1_700_000_000_000}); err != nil {
		fmt.Println(err)
	}
	f, err := fsys.OpenFile("index/20231114221320000", os.O_RDONLY, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	size, _ := f.Size()
	shape, ok, err := index.InferShape(f.Name(), f, size)
	fmt.Println(shape, ok, err)
	d, err := index.ScanFile(f.Name(), f, size, shape.Slots)
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range d.Entries() {
		fmt.Println(e.Number, e.PhysicalOffset, err)
	}
	for err := range d.Check() {
		fmt.Println("damaged:", err)
	}
	fmt.Println(f.Close(), x.Close())
	// Output:
	// {3 5} true <nil>
	// 1 42 <nil>
	// 2 42 <nil>
	// <nil> <nil>
}

func ExampleHeader_Check() {
	h, err := index.DecodeHeader(bytes.Repeat([]byte{0xFF}, index.HeaderSize))
	fmt.Println(err)
	fmt.Println(h.Check(index.Shape{Slots: 100, Entries: 400}))
	// Output:
	// <nil>
	// impossible index header: index count -1 in a file for 400 entries
}

func ExampleIndex_DropAfterTime() {
	x, err := index.Open(memfs.New(), "index", &index.Options{Slots: 3, Entries: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range int64(5) { // two keys a file
		if err := x.Put(index.Keys{Topic: []byte("T"), Keys: []byte("k"), PhysicalOffset: i * 100, StoreTimestamp: 1_700_000_000_000 + i}); err != nil {
			fmt.Println(err)
		}
	}
	dropped, err := x.DropAfterTime(1_700_000_000_001) // the checkpoint covers the first file
	fmt.Println(dropped, err)
	fmt.Println(x.DroppedFrom())
	fmt.Println(x.Close())
	// Output:
	// [index/20231114221320004 index/20231114221320002] <nil>
	// 100 true
	// <nil>
}
