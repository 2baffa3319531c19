package inspect_test

import (
	"context"
	"fmt"

	"github.com/rocketstore/rocketstore/inspect"
)

// exampleStore is a store of two commit log files, of which the first has damage in it. Any io/fs.FS will do, such as
// os.DirFS("/data/store") or a zip archive.
func exampleStore() tree {
	first := records(0, 3)
	first[recordSize+4] = 0 // the magic of the second record
	s := newTree()
	s.log(0, 4096, first, blank(4096, 3*recordSize))
	s.log(4096, 4096, record(4096, "hello", "KEYS", "order-1"))
	s.queue("TopicA", 0, 0, 10, unit(0, recordSize), unit(recordSize, recordSize))
	s.put("index/20240101000000000", indexFile([]string{"order-1"}, []int64{4096}))
	return s
}

// mustOpen opens a store that is known to be one.
func mustOpen(s tree) *inspect.Dir {
	d, err := inspect.Open(s)
	if err != nil {
		panic(err)
	}
	return d
}

func ExampleOpen() {
	d, err := inspect.Open(exampleStore())
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := d.Identify(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id.Line, id.Clean, id.CommitLog.Records, len(id.Findings))
	// Output: 4.x true 3 1
}

func ExampleDir_Log() {
	d := mustOpen(exampleStore())
	report := func(f inspect.Finding) { fmt.Println("finding:", f) }
	for r, err := range d.Log(context.Background(), inspect.LogRange{}, report) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r.File, r.PhysicalOffset, string(r.Body))
	}
	// Output:
	// commitlog/00000000000000000000 0 body
	// finding: error: commitlog/00000000000000000000: offset 101: no record: wrong magic 00a320a7; 101 bytes passed over, the log goes on at 202
	// commitlog/00000000000000000000 202 body
	// commitlog/00000000000000004096 4096 hello
}

func ExampleDir_RecordAt() {
	r, ok, err := mustOpen(exampleStore()).RecordAt(4096, func(inspect.Finding) {})
	fmt.Println(string(r.Body), ok, err)
	// Output: hello true <nil>
}

func ExampleDir_ByKey() {
	for r, err := range mustOpen(exampleStore()).ByKey(context.Background(), "TopicA", "order-1", func(inspect.Finding) {}) {
		fmt.Println(r.PhysicalOffset, err)
	}
	// Output: 4096 <nil>
}

func ExampleDir_ByID() {
	d := mustOpen(exampleStore())
	for r, err := range d.ByID(context.Background(), "0A00000100002A9F0000000000001000", "", func(inspect.Finding) {}) {
		fmt.Println(string(r.Body), err)
	}
	// Output: hello <nil>
}

func ExampleDir_Queues() {
	for u, err := range mustOpen(exampleStore()).Queues(context.Background(), inspect.QueueFilter{}, func(inspect.Finding) {}) {
		fmt.Println(u.Topic, u.QueueID, u.Index, u.PhysicalOffset, u.Size, err)
	}
	// Output:
	// TopicA 0 0 0 101 <nil>
	// TopicA 0 1 101 101 <nil>
}

func ExampleDir_IndexFiles() {
	for x, err := range mustOpen(exampleStore()).IndexFiles(context.Background(), func(inspect.Finding) {}) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(x.File, x.Shape.Slots, x.Keys())
		for e, err := range x.Entries() {
			fmt.Println(e.Number, e.PhysicalOffset, err)
		}
	}
	// Output:
	// index/20240101000000000 7 1
	// 1 4096 <nil>
}

func ExampleDir_Match() {
	d := mustOpen(exampleStore())
	f := inspect.Filter{Topic: "TopicA", Key: "order-1"}
	for r, err := range d.Log(context.Background(), inspect.LogRange{From: 4096}, func(inspect.Finding) {}) {
		fmt.Println(d.Match(&f, &r), err)
	}
	// Output: true <nil>
}

func ExampleDir_Require() {
	err := mustOpen(exampleStore()).Require(inspect.Sizes{CommitLog: 1 << 30})
	fmt.Println(err)
	// Output: commitlog/00000000000000000000: offset 0: 4096 bytes, 1073741824 asked for
}

func ExampleDir_Check() {
	for f, err := range mustOpen(exampleStore()).Check(context.Background(), inspect.CheckOptions{}) {
		if f.Kind == inspect.WrongUnit || f.Kind == inspect.BadMagic {
			fmt.Println(f.Kind, f.File, f.Offset, err)
		}
	}
	// Output:
	// queue unit does not match its record consumequeue/TopicA/0/00000000000000000000 12 <nil>
	// wrong magic commitlog/00000000000000000000 101 <nil>
}

func ExampleDir_Explain() {
	x, err := mustOpen(exampleStore()).Explain("consumequeue/TopicA/0/00000000000000000000", 29)
	fmt.Println(x.What, x.Fields[x.Field].Name, x.Fields[x.Field].Value, err)
	// Output: unit 1 of queue TopicA/0 record size 101 <nil>
}
