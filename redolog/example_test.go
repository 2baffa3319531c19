package redolog_test

import (
	"fmt"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/redolog"
)

func Example() {
	log, err := redolog.Open(memfs.New(), redolog.Dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, u := range []redolog.Unit{
		{PhysicalOffset: 0, Size: 180, TagsCode: redolog.Prepared},
		{PhysicalOffset: 180, Size: 175, TagsCode: redolog.Prepared},
		{PhysicalOffset: 355, Size: 180, TagsCode: 0}, // commits the first
		{PhysicalOffset: 180, Size: 175, TagsCode: redolog.Prepared},
	} {
		appended, err := log.Append(u)
		fmt.Println(u.PhysicalOffset, appended, err)
	}
	set, err := log.OpenSet()
	fmt.Println(slices.Collect(set.All()), err)
	fmt.Println(log.Close())
	// Output:
	// 0 true <nil>
	// 180 true <nil>
	// 355 true <nil>
	// 180 false <nil>
	// [180] <nil>
	// <nil>
}

func ExampleOpenSet() {
	var s redolog.OpenSet
	s.Apply(redolog.Unit{PhysicalOffset: 481, Size: 234, TagsCode: redolog.Prepared})
	s.Apply(redolog.Unit{PhysicalOffset: 715, Size: 234, TagsCode: redolog.Prepared})
	s.Apply(redolog.Unit{PhysicalOffset: 949, Size: 233, TagsCode: 481})
	fmt.Println(s.Len(), s.Has(481), s.Has(715))
	// Output:
	// 1 false true
}
