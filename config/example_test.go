package config_test

import (
	"fmt"
	"log"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func ExampleLoad() {
	fsys := memfs.New()
	var offsets config.ConsumerOffsets
	notice, err := config.Load[mappedfile.File](fsys, &offsets)
	fmt.Println(notice == nil, err, offsets.Table.Len()) // neither file nor backup: empty

	offsets.Set("TopicTest", "group", 0, 5)
	fmt.Println(config.Save[mappedfile.File](fsys, &offsets))

	var again config.ConsumerOffsets
	_, err = config.Load[mappedfile.File](fsys, &again)
	offset, ok := again.At("TopicTest", "group", 0)
	fmt.Println(offset, ok, err)
	// Output:
	// true <nil> 0
	// <nil>
	// 5 true <nil>
}

func ExampleMap() {
	var levels config.Offsets
	levels.Set(16, 0)
	levels.Set(1, 8)
	levels.Set(16, 2)
	for level, offset := range levels.All() {
		fmt.Println(level, offset)
	}
	// Output:
	// 16 2
	// 1 8
}

func ExampleFreeze() {
	disk, offsets := memfs.New(), &config.ConsumerOffsets{}
	offsets.Set("Orders", "readers", 0, 7)
	asItIs := config.Freeze(offsets)
	offsets.Set("Orders", "readers", 0, 8) // by somebody else, meanwhile
	if err := config.Save[mappedfile.File](disk, asItIs); err != nil {
		log.Fatal(err)
	}
	read := &config.ConsumerOffsets{}
	if _, err := config.Load[mappedfile.File](disk, read); err != nil {
		log.Fatal(err)
	}
	fmt.Println(read.At("Orders", "readers", 0))
	// Output: 7 true
}
