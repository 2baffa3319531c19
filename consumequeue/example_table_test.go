package consumequeue_test

import (
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func ExampleOpenTable() {
	table, err := consumequeue.OpenTable(memfs.New(), "consumequeue", &consumequeue.Options{SegmentSize: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer table.Close()
	for _, topic := range []string{"orders", "audit"} {
		q, err := table.Ensure(topic, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := q.Append(0, consumequeue.Unit{PhysicalOffset: 0, Size: 169}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := table.Sync(0); err != nil { // durable from here on
		fmt.Println(err)
		return
	}
	for q := range table.All() {
		first, end := q.Bounds()
		fmt.Println(q.Dir(), first, end)
	}
	// Output:
	// consumequeue/audit/0 0 1
	// consumequeue/orders/0 0 1
}

// A queue begins where its first unit says; units can be dispatched again.
func ExampleQueue_Append() {
	table, err := consumequeue.OpenTable(memfs.New(), "consumequeue", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer table.Close()
	q, err := table.Ensure("orders", 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	u := consumequeue.Unit{PhysicalOffset: 40960, Size: 200}
	fmt.Println(q.Append(1000, u))
	fmt.Println(q.Append(1000, u))
	u.Size = 201
	fmt.Println(q.Append(1000, u))
	fmt.Println(errors.Is(q.Append(1<<40, u), consumequeue.ErrHole))
	fmt.Println(q.Bounds())
	// Output:
	// <nil>
	// <nil>
	// queue orders/3: unit 1000 is offset 40960, size 200, tags code 0; to be appended: offset 40960, size 201, tags code 0
	// true
	// 1000 1001
}

func ExampleQueue_OffsetAt() {
	table, err := consumequeue.OpenTable(memfs.New(), "consumequeue", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer table.Close()
	q, err := table.Ensure("orders", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range int64(10) {
		if err := q.Append(i, consumequeue.Unit{PhysicalOffset: i * 100, Size: 100}); err != nil {
			fmt.Println(err)
			return
		}
	}
	// The store looks into the commit log; here the messages were stored a second apart.
	stored := func(u consumequeue.Unit) (int64, error) { return 1_700_000_000_000 + u.PhysicalOffset*10, nil }
	fmt.Println(q.OffsetAt(1_700_000_002_500, stored))
	fmt.Println(q.OffsetAt(1_700_000_100_000, stored))
	// Output:
	// 3 <nil>
	// 10 <nil>
}
