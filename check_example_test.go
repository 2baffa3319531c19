package rocketstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// asker would look for a connection to a producer of the group and send the record over it.
type asker struct{ asked chan string }

func (a asker) Check(_ context.Context, r rocketstore.CheckRequest) error {
	a.asked <- fmt.Sprintf("%s: what became of %q, number %d?", r.Group, r.Record.Body, r.Number)
	return nil
}

// The producer of a transaction that it left open is asked.
func ExampleChecker() {
	a := asker{make(chan string)}
	s, err := rocketstore.Open("", &rocketstore.Options{
		FS: memfs.New(), Dialect: "3.1", SegmentSize: 64 << 10,
		Checks: rocketstore.Checks{Checker: a, Every: time.Millisecond, MinAge: time.Millisecond}, // a minute each by default
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, _ := message.NewProperties(message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, "payments")
	put, err := s.Put(context.Background(), &message.Message{Topic: "Orders", Body: []byte("order 1"), Properties: p})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-a.asked)
	_, err = s.EndTransaction(context.Background(), rocketstore.TransactionEnd{
		ProducerGroup: "payments", PreparedOffset: put.PhysicalOffset, Number: put.QueueOffset, Commit: true,
	})
	fmt.Println(err)
	go func() {
		for range a.asked { // one more question may be on its way
		}
	}()
	fmt.Println(s.Close(context.Background()))
	// Output:
	// payments: what became of "order 1", number 0?
	// <nil>
	// <nil>
}
