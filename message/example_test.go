package message_test

import (
	"fmt"

	"github.com/rocketstore/rocketstore/message"
)

func ExampleProperties() {
	p, err := message.NewProperties("KEYS", "order-7", "TAGS", "paid")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err = p.Set("TAGS", "shipped")
	for name, value := range p.All() {
		fmt.Println(name, "=", value, err)
	}
	// Output:
	// KEYS = order-7 <nil>
	// TAGS = shipped <nil>
}

func ExampleOffsetID() {
	h, err := message.ParseHost("10.0.0.1:10911")
	fmt.Println(message.OffsetID(h, 169), err)
	// Output: 0A00000100002A9F00000000000000A9 <nil>
}

func ExampleHashString() {
	fmt.Println(message.HashString("TagA"), message.HashString("polygenelubricants"))
	// Output: 2598919 -2147483648
}
