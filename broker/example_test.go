package broker_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/message"
)

func ExampleStart() {
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	o := &broker.Options{Name: "broker-a", Port: -1, Dir: dir} // any port of 127.0.0.1
	o.Store.SegmentSize = 1 << 20
	b, err := broker.Start(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	// Clients find it through the name servers in Options.NameServers; the embedder has the store itself as well.
	if _, err := b.Store().Put(ctx, &message.Message{Topic: "T", Body: []byte("hello")}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Ready(), b.Stats().Topics)
	if err := b.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Ready())
	// Output:
	// true 8
	// false
}

func ExampleOptions_SetProperties() {
	var o broker.Options
	unknown, err := o.SetProperties("brokerName = broker-a\nlistenPort = 10921\npullMessageThreadPoolNums = 4\n")
	fmt.Println(o.Name, o.Port, unknown, err)
	_, err = o.SetProperties("flushDiskType = LATER\n")
	fmt.Println(err)
	// Output:
	// broker-a 10921 [pullMessageThreadPoolNums] <nil>
	// line 1: property refused: flushDiskType = "LATER": allowed: ASYNC_FLUSH, SYNC_FLUSH
}
