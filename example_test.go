package rocketstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// A store in a program: put, read a queue, find by key, close.
func Example() {
	ctx := context.Background()
	// On disk it is rocketstore.Open("/var/lib/mq/store", nil).
	store, err := rocketstore.Open("", &rocketstore.Options{FS: memfs.New(), SegmentSize: 1 << 20, IndexSlots: 100, IndexEntries: 400})
	if err != nil {
		log.Fatal(err)
	}
	properties, err := message.NewProperties(message.PropertyKeys, "order-42", message.PropertyTags, "paid")
	if err != nil {
		log.Fatal(err)
	}
	put, err := store.Put(ctx, &message.Message{Topic: "Orders", QueueID: 1, Body: []byte("hello"), Properties: properties})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("queue offset", put.QueueOffset, "id", put.MessageID())
	for record, err := range store.Messages("Orders", 1, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("by queue: %s\n", record.Body)
	}
	for record, err := range store.Query(ctx, rocketstore.QueryRequest{Topic: "Orders", Key: "order-42"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("by key: %s\n", record.Body)
	}
	if err := store.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// queue offset 0 id 7F00000100002A9F0000000000000000
	// by queue: hello
	// by key: hello
}

// After a crash the next opening recovers, and says what it did.
func ExampleStore_Report() {
	disk := memfs.New()
	o := &rocketstore.Options{FS: disk, SegmentSize: 1 << 20, IndexSlots: 100, IndexEntries: 400}
	store, err := rocketstore.Open("", o)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Put(context.Background(), &message.Message{Topic: "Orders", Body: []byte("kept")}); err != nil {
		log.Fatal(err)
	}
	if err := store.Abandon(); err != nil { // as the death of the process
		log.Fatal(err)
	}
	if store, err = rocketstore.Open("", o); err != nil {
		log.Fatal(err)
	}
	r := store.Report()
	fmt.Println("unclean:", r.Unclean, "replayed:", r.Dispatched, "cut:", r.CutBytes)
	if err := store.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// unclean: true replayed: 1 cut: 0
}

// A transaction: the message is stored, but in no queue before it is committed.
func ExampleStore_EndTransaction() {
	ctx := context.Background()
	store, err := rocketstore.Open("", &rocketstore.Options{FS: memfs.New(), Dialect: "3.1", SegmentSize: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	p, err := message.NewProperties(message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, "payments")
	if err != nil {
		log.Fatal(err)
	}
	prepared, err := store.Put(ctx, &message.Message{Topic: "Orders", Body: []byte("paid"), Properties: p})
	if err != nil {
		log.Fatal(err)
	}
	for open, err := range store.OpenTransactions(ctx) {
		fmt.Println("open:", open.Number, err)
	}
	_, err = store.EndTransaction(ctx, rocketstore.TransactionEnd{
		ProducerGroup: "payments", PreparedOffset: prepared.PhysicalOffset, Number: prepared.QueueOffset, Commit: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	for record, err := range store.Messages("Orders", 0, 0) {
		fmt.Printf("%s %v\n", record.Body, err)
	}
	if err := store.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// open: 0 <nil>
	// paid <nil>
}
