package rocketstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// Old messages go by hand: first what would go, then for good.
func ExampleStore_Expire() {
	ctx := context.Background()
	store, err := rocketstore.Open("", &rocketstore.Options{FS: memfs.New(), SegmentSize: 4096, NoIndex: true})
	if err != nil {
		log.Fatal(err)
	}
	for range 10 {
		if _, err := store.Put(ctx, &message.Message{Topic: "Orders", Body: make([]byte, 1800)}); err != nil {
			log.Fatal(err)
		}
	}
	for _, dry := range []bool{true, false} {
		gone, err := store.Expire(ctx, rocketstore.ExpireOptions{MaxBytes: 3 * 4096, DryRun: dry})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(gone.Files), "files,", gone.Messages, "messages; the log begins at", gone.LogStart)
	}
	answer, err := store.Get(ctx, rocketstore.GetRequest{Topic: "Orders", Offset: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Status, "go on at", answer.Next)
	answer.Release()
	if err := store.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 2 files, 4 messages; the log begins at 8192
	// 2 files, 4 messages; the log begins at 8192
	// OFFSET_TOO_SMALL go on at 4
}
