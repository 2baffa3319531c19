package txstate_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

func Example() {
	table, err := txstate.Open(memfs.New(), txstate.Dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for number := range int64(3) {
		err := table.Append(number, txstate.Record{
			CommitOffset: number * 180, Size: 180, StoredAt: txstate.SecondsOf(1_700_000_000_000), GroupHash: 76862061,
			State: txstate.Prepared,
		})
		fmt.Println("prepared", number, err)
	}
	for range 2 {
		resolved, err := table.Update(1, 180, 76862061, txstate.Committed)
		fmt.Println("resolved before:", resolved, err)
	}
	_, err = table.Update(2, 180, 76862061, txstate.Committed)
	fmt.Println(errors.Is(err, txstate.ErrOtherMessage))
	for e, err := range table.All(0) {
		fmt.Println("ask for", e.Number, e.CommitOffset, err)
	}
	fmt.Println(table.Close())
	// Output:
	// prepared 0 <nil>
	// prepared 1 <nil>
	// prepared 2 <nil>
	// resolved before: false <nil>
	// resolved before: true <nil>
	// true
	// ask for 0 0 <nil>
	// ask for 2 360 <nil>
	// <nil>
}

func ExampleScan() {
	segment := txstate.Record{CommitOffset: 128, Size: 130, State: txstate.Prepared}.AppendTo(nil)
	segment = append(segment, "not a record, far from it"...)
	for e, err := range txstate.Scan("transaction/statetable/00000000000000000000", 0, bytes.NewReader(segment), int64(len(segment))) {
		fmt.Println(e.Number, e.CommitOffset == 128, errors.Is(err, mappedfile.ErrCorrupt))
	}
	// Output:
	// 0 true false
	// 1 false true
}
