package commitlog_test

import (
	"bytes"
	"fmt"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
)

func ExampleScan() {
	var log []byte
	for _, body := range []string{"one", "two"} {
		r := commitlog.Record{
			Magic: commitlog.MagicV1, PhysicalOffset: int64(len(log)), Topic: []byte("T"), Body: []byte(body),
			BodyCRC: message.CRC([]byte(body)),
		}
		log = r.AppendTo(log)
	}
	log = append(log, "what is left of a third one"...)
	for r, err := range commitlog.Scan("commitlog/00000000000000000000", 0, bytes.NewReader(log), int64(len(log))) {
		fmt.Printf("%d %q %v\n", r.PhysicalOffset, r.Body, err)
	}
	// Output:
	// 0 "one" <nil>
	// 95 "two" <nil>
	// 0 "" commitlog/00000000000000000000: offset 190: no record: wrong magic 20697320
}
