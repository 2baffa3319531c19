package consumer_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/namesrv"
	"github.com/rocketstore/rocketstore/producer"
)

// servers starts a name server and a broker on loopback and sends three messages to topic Orders, in one queue. They end with the
// process of the examples.
func servers() (nameServer string) {
	ctx := context.Background()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	names, err := namesrv.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = names.Serve(ctx, l) }()
	o := &broker.Options{Name: "broker-a", Port: -1, NameServers: []string{l.Addr().String()}}
	o.Store.FS, o.Store.SegmentSize = memfs.New(), 1<<20
	b, err := broker.Start(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	for b.Stats().Registered == 0 {
		time.Sleep(time.Millisecond)
	}
	p, err := producer.New(&producer.Options{Group: "shop", NameServers: []string{l.Addr().String()}})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"one", "two", "three"} {
		m := &message.Message{Topic: "Orders", Body: []byte(body)}
		if _, err := p.SendTo(ctx, m, producer.Queue{Topic: "Orders", BrokerName: "broker-a"}); err != nil {
			log.Fatal(err)
		}
	}
	_, end := b.Store().Bounds()
	if err := b.Store().WaitDispatched(ctx, end); err != nil { // until then a pull may find fewer
		log.Fatal(err)
	}
	return l.Addr().String()
}

func ExampleConsumer_Messages() {
	ctx := context.Background()
	c, err := consumer.Start(ctx, &consumer.Options{
		Group: "CG", NameServers: []string{servers()}, Topics: map[string]string{"Orders": "*"}, From: consumer.FromFirst,
	})
	if err != nil {
		log.Fatal(err)
	}
	reading, enough := context.WithCancel(ctx)
	defer enough()
	for m, err := range c.Messages(reading) {
		if err != nil {
			log.Println(err) // it goes on trying
			continue
		}
		fmt.Println(m.QueueOffset, string(m.Body))
		if m.QueueOffset == 2 {
			enough() // the loop comes for the next one, so this one counts as consumed
		}
	}
	if err := c.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 one
	// 1 two
	// 2 three
}

func ExampleStart() {
	ctx := context.Background()
	done := make(chan struct{})
	c, err := consumer.Start(ctx, &consumer.Options{
		Group: "CG", NameServers: []string{servers()}, Topics: map[string]string{"Orders": "*"}, From: consumer.FromFirst,
		Orderly: true,
		Listener: func(_ context.Context, b *consumer.Batch) error {
			for _, m := range b.Messages {
				fmt.Println(m.QueueOffset, string(m.Body))
				if m.QueueOffset == 2 {
					close(done)
				}
			}
			return nil // an error has the queue rest for a second, and then the same messages come
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	<-done
	if err := c.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 one
	// 1 two
	// 2 three
}

func ExampleStartPull() {
	ctx := context.Background()
	p, err := consumer.StartPull(ctx, &consumer.PullOptions{Group: "CG", NameServers: []string{servers()}, From: consumer.FromFirst})
	if err != nil {
		log.Fatal(err)
	}
	queues, err := p.Queues(ctx, "Orders")
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Assign(ctx, "*", queues...); err != nil {
		log.Fatal(err)
	}
	list, err := p.Poll(ctx)
	fmt.Println(len(list), string(list[0].Body), err)
	if err := p.Close(ctx); err != nil { // stores the offsets
		log.Fatal(err)
	}
	// Output:
	// 3 one <nil>
}
